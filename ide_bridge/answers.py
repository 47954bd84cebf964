"""Answers: what is given at once, or has to be awaited.

Most questions can be answered where they are asked; a task for each would cost more than the answer. So a
function may return its result or an awaitable of it, and `then` goes on with either.

It does not know what is asked.
"""

from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, TypeAlias, TypeGuard, TypeVar

__all__ = ["Answer", "Later", "dismiss", "settled", "then", "waits"]

T = TypeVar("T")
R = TypeVar("R")

Answer: TypeAlias = T | Awaitable[T]


def waits(answer: Answer[T]) -> TypeGuard[Awaitable[T]]:
    """Whether an answer has to be awaited; a tenth of the time that `inspect.isawaitable` takes."""
    return hasattr(type(answer), "__await__")


def then(answer: Answer[T], use: Callable[[T], R]) -> Answer[R]:
    """Go on with an answer: at once if it is there, else when it comes."""
    return Later(answer, use) if waits(answer) else use(answer)  # type: ignore[arg-type]


async def settled(answer: Answer[T]) -> T:
    """Wait for an answer if need be."""
    return await answer if waits(answer) else answer  # type: ignore[return-value]


class Later(Generic[T, R]):
    """An answer that will be used when it comes; until somebody waits for it, it can be dismissed.

    What goes wrong meanwhile is raised, or becomes what `otherwise` makes of it.
    """

    __slots__ = ("_answer", "_otherwise", "_use")

    def __init__(
        self, answer: Awaitable[T], use: Callable[[T], R], otherwise: Callable[[Exception], R] | None = None
    ) -> None:
        self._answer = answer
        self._use = use
        self._otherwise = otherwise

    def __await__(self) -> Generator[Any, Any, R]:
        try:
            return self._use((yield from self._answer.__await__()))
        except Exception as error:
            if self._otherwise is None:
                raise
            return self._otherwise(error)

    def close(self) -> None:
        """Nobody will wait for it."""
        dismiss(self._answer)


def dismiss(answer: object) -> None:
    """Let an answer go that nobody has begun to wait for, with all it was made of."""
    if (close := getattr(answer, "close", None)) is not None and waits(answer):
        close()
