"""The kinds of panels there are here, each with what none of them goes without: title, text, unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from grafana_foundation_sdk.builders import bargauge, common, stat, timeseries
from grafana_foundation_sdk.builders.dashboard import DashboardLink, ThresholdsConfig
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.common import (
    BarGaugeDisplayMode,
    BarGaugeValueMode,
    BigValueColorMode,
    BigValueGraphMode,
    GraphDrawStyle,
    LegendDisplayMode,
    LegendPlacement,
    SortOrder,
    StackingMode,
    TooltipDisplayMode,
    VisibilityMode,
    VizOrientation,
)
from grafana_foundation_sdk.models.dashboard import DataSourceRef, DynamicConfigValue, Threshold

from dashboards.grafana.queries import MIXED, Query

Panel = Builder[model.Panel]
Steps = Sequence[tuple[float, str]]

CALM: Final[Steps] = ()
"""No value of it is worth a colour."""

Colours = tuple[tuple[str, str], ...]

PLAIN: Final[Colours] = ()
"""Any colour will do."""

VERDICTS: Final[Colours] = (("allow", "green"), ("ask", "yellow"), ("deny", "red"))
"""The colours of decisions."""

OUTCOMES: Final[Colours] = (
    ("abandoned", "text"),
    ("answered", "green"),
    ("cancelled", "blue"),
    ("denied", "orange"),
    ("failed", "red"),
    ("halted", "purple"),
    ("open", "text"),
    ("paused", "yellow"),
)
"""The colours of how a run ended."""

STATUSES: Final[Colours] = (
    ("blocked", "dark-orange"),
    ("cancelled", "blue"),
    ("denied", "orange"),
    ("failed", "red"),
    ("invalid", "light-orange"),
    ("paused", "yellow"),
    ("ran", "green"),
    ("unknown", "purple"),
)
"""The colours of how a call ended."""

ANSWERS: Final[Colours] = (("approved", "green"), ("declined", "red"), ("value", "blue"))
"""The colours of what people answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What every panel says of itself.

    Attributes:
        title: Its title.
        text: What it shows, and what to think of it.
        unit: Grafana's name for the unit.
        source: Where its data come from; None when from several.
        width: Of 24 columns.
        height: In rows of the grid.
    """

    title: str
    text: str
    unit: str
    source: DataSourceRef | None
    width: int
    height: int = 8


def number(
    about: About, query: Query, *more: Query, steps: Steps = CALM, decimals: int | None = None
) -> Panel:
    """One number, with a colour where it is worth one."""
    made = (
        stat.Panel()
        .title(about.title)
        .description(about.text)
        .unit(about.unit)
        .datasource(about.source or MIXED)
        .span(about.width)
        .height(about.height)
        .thresholds(_thresholds(steps))
        .color_mode(BigValueColorMode.VALUE)
        .graph_mode(BigValueGraphMode.NONE)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .no_value("none")
        .targets([query, *more])
    )
    return made if decimals is None else made.decimals(decimals)


def lines(
    about: About,
    query: Query,
    *more: Query,
    stacked: bool = False,
    colours: Colours = PLAIN,
    top: float | None = None,
) -> Panel:
    """Series over time; stacked as bars where they are parts of a whole."""
    made = (
        timeseries.Panel()
        .title(about.title)
        .description(about.text)
        .unit(about.unit)
        .datasource(about.source or MIXED)
        .span(about.width)
        .height(about.height)
        .min(0)
        .show_points(VisibilityMode.AUTO)
        .span_nulls(span_nulls=False)
        .fill_opacity(70 if stacked else 8)
        .line_width(1 if stacked else 2)
        .draw_style(GraphDrawStyle.BARS if stacked else GraphDrawStyle.LINE)
        .stacking(common.StackingConfig().mode(StackingMode.NORMAL if stacked else StackingMode.NONE))
        .tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING))
        .legend(_legend())
        .no_value("none")
        .targets([query, *more])
    )
    for word, colour in colours:
        made = made.override_by_name(word, [_colour(colour)])
    return made if top is None else made.max(top)


def ranking(about: About, query: Query) -> Panel:
    """Names by a number, the largest first."""
    return (
        bargauge.Panel()
        .title(about.title)
        .description(about.text)
        .unit(about.unit)
        .datasource(about.source or MIXED)
        .span(about.width)
        .height(about.height)
        .min(0)
        .decimals(0)
        .orientation(VizOrientation.HORIZONTAL)
        .display_mode(BarGaugeDisplayMode.BASIC)
        .value_mode(BarGaugeValueMode.TEXT)
        .thresholds(_thresholds([(0, "orange")]))
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .no_value("none")
        .targets([query])
    )


def _thresholds(steps: Steps) -> ThresholdsConfig:
    first = Threshold(value=None, color="green" if steps else "text")
    config = ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE)
    return config.steps([first, *(Threshold(value=value, color=colour) for value, colour in steps)])


def _legend() -> common.VizLegendOptions:
    made = common.VizLegendOptions().show_legend(show_legend=True).display_mode(LegendDisplayMode.LIST)
    return made.placement(LegendPlacement.BOTTOM).calcs([])


def _colour(colour: str) -> DynamicConfigValue:
    return DynamicConfigValue(id_val="color", value={"mode": "fixed", "fixedColor": colour})


def link(title: str, uid: str) -> DashboardLink:
    """A link at the top to another dashboard, with the time and the variables of this one."""
    made = DashboardLink(title).type(model.DashboardLinkType.LINK).url(f"/d/{uid}")
    return made.keep_time(keep_time=True).include_vars(include_vars=True)
