"""What others do: adapters to other libraries behind the protocol of evaluation."""
