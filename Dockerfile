# syntax=docker/dockerfile:1
# The service: docker build -t sadrec . && docker run -p 127.0.0.1:8000:8000 -v ./served:/served:ro sadrec
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN python -m venv /opt/sadrec \
 && /opt/sadrec/bin/pip install --no-cache-dir ".[serve]"

FROM python:3.12-slim
RUN groupadd --gid 10001 sadrec && useradd --uid 10001 --gid sadrec --no-create-home --shell /usr/sbin/nologin sadrec \
 && install -d -o sadrec -g sadrec /var/cache/sadrec /answers
COPY --from=build /opt/sadrec /opt/sadrec
# Compiled kernels are kept here.
ENV PATH=/opt/sadrec/bin:$PATH NUMBA_CACHE_DIR=/var/cache/sadrec PYTHONUNBUFFERED=1
USER 10001:10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=120s --retries=3 \
  CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/readyz', timeout=2)"]
STOPSIGNAL SIGTERM
# Inside a container 0.0.0.0 is what can be published; publish it at 127.0.0.1 unless keys are given.
ENTRYPOINT ["sadrec", "serve", "--host", "0.0.0.0", "--port", "8000"]
CMD ["/served/model.sad"]
