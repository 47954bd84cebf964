"""Answers: what is given at once, or has to be awaited.

Most questions can be answered where they are asked; a task for each would cost more than the answer. So a
function may return its result or an awaitable of it, and `then` goes on with either.

It does not know what is asked.
"""

from collections.abc import Awaitable, Callable
from typing import TypeAlias, TypeGuard, TypeVar

__all__ = ["Answer", "settled", "then", "waits"]

T = TypeVar("T")
R = TypeVar("R")

Answer: TypeAlias = T | Awaitable[T]


def waits(answer: Answer[T]) -> TypeGuard[Awaitable[T]]:
    """Whether an answer has to be awaited; a tenth of the time that `inspect.isawaitable` takes."""
    return hasattr(type(answer), "__await__")


def then(answer: Answer[T], use: Callable[[T], R]) -> Answer[R]:
    """Go on with an answer: at once if it is there, else when it comes."""
    return _later(answer, use) if waits(answer) else use(answer)  # type: ignore[arg-type]


async def settled(answer: Answer[T]) -> T:
    """Wait for an answer if need be."""
    return await answer if waits(answer) else answer  # type: ignore[return-value]


async def _later(answer: Awaitable[T], use: Callable[[T], R]) -> R:
    return use(await answer)
