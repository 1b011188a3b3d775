use std::fmt;

/// One figure beside its limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// What was measured.
    pub what: String,
    /// What it came to.
    pub ours: f64,
    /// Of both figures.
    pub unit: &'static str,
    /// What bounds it, and how much that came to in the same run.
    pub limit: Option<(&'static str, f64)>,
    /// What should be reached, in words.
    pub goal: &'static str,
}

/// Takes the figures of a run as soon as they are known.
pub(super) struct Report<'a> {
    told: Box<dyn Fn(&Figure) + 'a>,
}

impl<'a> Report<'a> {
    pub(super) fn new(told: impl Fn(&Figure) + 'a) -> Self {
        Self { told: Box::new(told) }
    }

    pub(super) fn add(&mut self, figure: Figure) {
        (self.told)(&figure);
    }
}

impl Figure {
    /// The names of the columns, in the widths of the figures.
    #[must_use]
    pub fn heading() -> String {
        format!(
            "{:<52} {:>10} {:<11} {:>10} {:>7}  {:<32} {}",
            "figure", "botmesh", "unit", "limit", "ratio", "the limit is", "goal"
        )
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, ours, unit, limit, goal } = self;
        let (name, limit, ratio) = match limit {
            Some((name, limit)) => (*name, number(*limit), format!("{:.2}", ours / limit)),
            None => ("", String::new(), String::new()),
        };
        let ours = number(*ours);
        let line =
            format!("{what:<52} {ours:>10} {unit:<11} {limit:>10} {ratio:>7}  {name:<32} {goal}");
        f.write_str(line.trim_end())
    }
}

fn number(value: f64) -> String {
    if value.abs() < 100.0 { format!("{value:.2}") } else { format!("{value:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_stands_beside_its_limit_and_their_ratio() {
        let what = "messages".to_owned();
        let limit = Some(("a bare client", 4000.0));
        let figure = Figure { what, ours: 3000.0, unit: "/s", limit, goal: ">= 0.8" }.to_string();
        assert!(figure.contains("3000 /s") && figure.contains("4000    0.75"), "{figure}");
    }
}
