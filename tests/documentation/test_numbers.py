"""Numbers in the README and the pages are those of ``results/``."""

from __future__ import annotations

import pytest

from tools import page_numbers


def test_the_pages_say_what_the_results_say():
    assert page_numbers.main(checking=True) == 0


@pytest.mark.parametrize("name", page_numbers.NUMBERS)
def test_every_number_is_in_the_results(name):
    assert page_numbers.NUMBERS[name]().strip()


def test_a_wrong_number_is_found():
    text = "<!-- number:over-svm -->1.0<!-- /number -->"
    assert page_numbers.filled(text) != text
    assert page_numbers.filled(page_numbers.filled(text)) == page_numbers.filled(text)
