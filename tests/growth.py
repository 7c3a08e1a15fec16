"""Whether work grows in step with what it is given, told from its times without asking a machine to be quiet."""

import gc
import math
import time
from collections.abc import Callable
from typing import TypeVar

Given = TypeVar("Given")

LARGER = 8  # the large case is as many times the small one: straight work takes 8 times as long, quadratic work 64
MOST = 20.0  # between the two, with room for caches that the large case leaves


def grows_in_step(work: Callable[[Given], object], small: Given, large: Given) -> bool:
    """Whether `work` on `large`, which is `LARGER` times `small`, takes about as many times as long.

    The best of several goes counts, in processor time, since other work on the machine only adds to it.
    """
    least = [math.inf, math.inf]
    gc.disable()  # its passes grow with what other tests left behind
    try:
        for _ in range(6):
            for which, given in enumerate((small, large)):
                start = time.process_time()
                work(given)
                least[which] = min(least[which], time.process_time() - start)
            if least[1] <= MOST * max(least[0], 5e-4):  # below this a clock tells nothing, and no way is quadratic
                return True
    finally:
        gc.enable()
    return False
