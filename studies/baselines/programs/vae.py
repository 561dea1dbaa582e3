"""The beta-VAE of Microsoft's recommenders: a variational autoencoder of a user's row."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .exchange import Fitted, Scores, Settings, Training

_VALIDATION_USERS = 500


def fit(training: Training, settings: Settings) -> Fitted:
    """Fit ``recommenders``' StandardVAE; a score is the number before the last softmax.

    The library's own prediction decodes a random draw of the user's code, so it differs from call to call; this
    one decodes the mean. Some training users also serve as the library's validation set, by which it lowers its
    learning rate.
    """
    import tensorflow as tf

    # The library's loss refers to layers of the model, which only works in graphs; this comes before its import.
    tf.compat.v1.disable_eager_execution()
    from recommenders.models.vae.standard_vae import StandardVAE

    n, m = training.shape
    tf.config.threading.set_intra_op_parallelism_threads(settings["num_threads"])
    tf.compat.v1.set_random_seed(settings["random_state"])
    rows = training.dense(0, n)
    chosen = np.random.default_rng(settings["random_state"]).permutation(n)[:_VALIDATION_USERS]
    checked = rows[np.sort(chosen)]
    model = StandardVAE(
        n_users=n,
        original_dim=m,
        intermediate_dim=settings["hidden"],
        latent_dim=settings["factors"],
        n_epochs=settings["iterations"],
        batch_size=min(settings["batch_size"], n),
        k=min(10, m),
        beta=settings["beta"],
        seed=settings["random_state"],
        verbose=2,
    )
    model.fit(rows, checked, checked, checked, _Mapper())
    encoder = tf.keras.Model(model.x, model.z_mean)
    hidden, hidden_bias = model.h_decoder.get_weights()
    output, output_bias = model.x_bar.get_weights()

    def scores(start: int, stop: int) -> Scores:
        code = encoder.predict(rows[start:stop], batch_size=1024)
        block: Scores = np.tanh(code @ hidden + hidden_bias) @ output + output_bias
        return block

    described = f"the rows of {n:,} users: {len(training.indices):,} interactions as 1, the other cells as 0"
    return Fitted(scores, described, ("recommenders", "tensorflow-cpu"))


class _Mapper:
    """What the library asks to turn a matrix of its validation users into a data frame."""

    def map_back_sparse(self, matrix: NDArray[Any], kind: str) -> Any:
        import pandas

        users, items = np.nonzero(matrix)
        name = "prediction" if kind == "prediction" else "rating"
        return pandas.DataFrame({"userID": users, "itemID": items, name: matrix[users, items]})
