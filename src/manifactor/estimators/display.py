"""A fit as a notebook shows it, and its figure."""

from importlib import import_module

from sklearn.utils.validation import check_is_fitted

from manifactor.estimators.locating import LocatingEstimator


class DisplayedEstimator(LocatingEstimator):
    """An estimator whose result is shown by notebooks, and drawn by `plot`.

    Drawings lie in a room above this one, which is imported when something is drawn: the only
    imports that point up.
    """

    def plot(self, figure=None):
        """Draw the factors, the spectrum and the angles between factors.

        Parameters
        ----------
        figure : matplotlib Figure, SubFigure or None
            What to draw on; None for a new figure of its own, which pyplot does not
            know: save it, or leave it as the last line of a cell of a notebook. For
            ``plt.show()``, give one of pyplot's: ``fit.plot(plt.figure())``.

        Returns
        -------
        Figure or SubFigure
            That which was drawn on.
        """
        check_is_fitted(self)
        return import_module("manifactor.views.plots").overview(self, figure=figure)

    def _repr_html_inner(self) -> str:
        return self._with_result(super()._repr_html_inner())

    def _repr_mimebundle_(self, **kwargs) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)
        # scikit-learn leaves it out where the user has asked for plain text.
        if "text/html" in bundle:
            bundle["text/html"] = self._with_result(bundle["text/html"])
        return bundle

    def _with_result(self, diagram: str) -> str:
        """Return the result above scikit-learn's diagram; before a fit, that alone."""
        if not hasattr(self, "factorization_"):
            return diagram
        return import_module("manifactor.views.notebook").result_html(self) + diagram
