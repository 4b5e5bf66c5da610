"""What a process has imported stays for its life: the garbage collector need not walk it again and again."""

import gc


def settle() -> None:
    """Set aside all that is there now; call it once, when everything is imported and nothing has begun.

    A full collection over the modules of web3, nextcord and Reflex takes a tenth of a second or more, in which nothing
    else runs, and one comes whenever a batch has made a quarter as many objects anew.
    """
    gc.collect()
    gc.freeze()
