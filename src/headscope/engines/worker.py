"""What a worker does, whoever started it; run by `processes` as a program of its own.

It gets its job and then runs to read.
"""

import io
import pickle

import torch

from headscope.engines.serving import serve
from headscope.errors import CannotStudy
from headscope.study.reader import Job, Reader


def packed_job(job: Job) -> bytes:
    """A job with its model, to be sent to workers."""
    data = io.BytesIO()
    try:
        torch.save(job, data)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise CannotStudy(
            f"This model cannot be sent to workers ({str(error)[:200]}). Study it with the engine "
            "'local', or load it from a folder."
        ) from error
    return data.getvalue()


def reader_of(data: bytes, device: str) -> Reader:
    """A reader for a job that was packed, with the model on a device."""
    job: Job = torch.load(io.BytesIO(data), map_location=device, weights_only=False)
    torch.set_num_threads(job.threads)
    return Reader(job)


def main() -> None:
    """Answer until nobody asks any more."""
    serve(lambda said: reader_of(*said).answer)
