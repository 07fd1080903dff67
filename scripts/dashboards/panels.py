"""Grafana's JSON for the kinds of panels that our dashboards have, and the dashboard around them.

A panel is made without a place; `dashboard` puts the panels of each row side by side.
"""

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH = 24  # Grafana's grid
GREEN, YELLOW, RED = "green", "orange", "red"


def _target(expr, legend, index, **more):
    return {"refId": chr(ord("A") + index), "datasource": DATASOURCE, "expr": expr, "legendFormat": legend, **more}


def _panel(kind, title, description, targets, unit, options, width, height, thresholds=None, **defaults):
    defaults = {"unit": unit, **defaults}
    if thresholds:
        steps = [{"color": color, "value": value} for color, value in thresholds]
        defaults["thresholds"] = {"mode": "absolute", "steps": steps}
        defaults["color"] = {"mode": "thresholds"}
    return {
        "type": kind, "title": title, "description": description, "datasource": DATASOURCE, "targets": targets,
        "fieldConfig": {"defaults": defaults, "overrides": []}, "options": options,
        "gridPos": {"w": width, "h": height},
    }


def _now(expr, legend="", index=0, **more):
    return _target(expr, legend, index, instant=True, range=False, **more)


LAST = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}}
# Shares of time: near nothing, noticeable, much.
SHARES = [(GREEN, None), (YELLOW, 0.05), (RED, 0.25)]


def stat(title, description, expr, unit="none", width=4, height=4, legend="", thresholds=None):
    """The value now, large; with a legend, one for each series, named."""
    options = {**LAST, "colorMode": "background" if thresholds else "value", "graphMode": "none",
               "textMode": "value_and_name" if legend else "value"}
    return _panel("stat", title, description, [_now(expr, legend)], unit, options, width, height, thresholds)


def bars(title, description, expr, legend, unit="percentunit", width=8, height=4, thresholds=None, **defaults):
    """The values now, a bar each."""
    options = {**LAST, "displayMode": "basic", "orientation": "horizontal", "showUnfilled": True}
    return _panel("bargauge", title, description, [_now(expr, legend)], unit, options, width, height, thresholds,
                  **defaults)


def lines(title, description, *series, unit="short", width=12, height=8, **defaults):
    """Over time; each of `series` is (expression, legend)."""
    options = {
        "legend": {"displayMode": "table", "placement": "bottom", "showLegend": True, "calcs": ["mean", "max"]},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    custom = {"lineWidth": 1, "fillOpacity": 8, "showPoints": "never", "spanNulls": False}
    targets = [_target(expr, legend, index) for index, (expr, legend) in enumerate(series)]
    return _panel("timeseries", title, description, targets, unit, options, width, height,
                  **{"min": 0, "custom": custom, **defaults})


def table(title, description, expr, columns, width=24, height=8, value=None, unit="none", thresholds=None):
    """A row for each series now: the labels `columns` in this order, then its value under the name `value`, if any."""
    panel = _panel("table", title, description, [_now(expr, format="table")], unit, {"showHeader": True}, width, height,
                   thresholds)
    names = [*columns, "Value"] if value else list(columns)
    arrange = {"includeByName": {name: True for name in names},
               "indexByName": {name: place for place, name in enumerate(names)},
               "excludeByName": {}, "renameByName": {"Value": value} if value else {}}
    panel["transformations"] = [{"id": "organize", "options": arrange}]
    if thresholds:  # a colour for the value alone
        cell = {"id": "custom.cellOptions", "value": {"type": "color-background"}}
        panel["fieldConfig"]["overrides"] = [{"matcher": {"id": "byName", "options": value}, "properties": [cell]}]
    return panel


def row(title):
    return {"type": "row", "title": title, "collapsed": False, "panels": [], "gridPos": {"w": WIDTH, "h": 1}}


def variable(name, label, query):
    """One that offers the values of a label, several at a time or all."""
    return {
        "name": name, "label": label, "type": "query", "datasource": DATASOURCE, "definition": query,
        "query": {"query": query, "refId": name}, "refresh": 2, "sort": 1, "multi": True, "includeAll": True,
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]}, "hide": 0, "options": [], "regex": "",
    }


def dashboard(uid, title, description, variables, panels):
    datasource = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "current": {},
                  "hide": 0, "includeAll": False, "multi": False, "options": [], "refresh": 1, "regex": ""}
    x = y = height = 0
    placed = []
    for identity, panel in enumerate(panels, 1):
        w, h = panel["gridPos"]["w"], panel["gridPos"]["h"]
        if x + w > WIDTH:
            x, y, height = 0, y + height, 0
        placed.append({"id": identity, **panel, "gridPos": {"x": x, "y": y, "w": w, "h": h}})
        x, height = x + w, max(height, h)
    return {
        "uid": uid, "title": title, "description": description, "tags": ["headrace"], "schemaVersion": 39, "version": 1,
        "editable": True, "graphTooltip": 1, "refresh": "10s", "timezone": "browser",
        "time": {"from": "now-30m", "to": "now"}, "annotations": {"list": []}, "links": [
            {"type": "dashboards", "title": "Headrace", "tags": ["headrace"], "asDropdown": False, "includeVars": False,
             "keepTime": True, "targetBlank": False, "icon": "external link", "tooltip": "", "url": ""}],
        "templating": {"list": [datasource, *variables]}, "panels": placed,
    }
