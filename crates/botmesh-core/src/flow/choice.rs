//! Steps whose answer is one of a list.

use std::borrow::Cow;
use std::sync::Arc;

use super::Flow;
use super::plan::{Ask, Prompt, Step, Target, Then};
use super::steps::ask_step;
use crate::question::{Invalid, Question};
use crate::text::Text;

impl<S: Send + 'static> Flow<S> {
    /// Offers choices as buttons and hands what the chosen one stands for to `take`. Nothing else
    /// is taken for an answer.
    ///
    /// ```
    /// use botmesh_core::flow;
    /// #[derive(Clone, Default)]
    /// enum Size { #[default] Small, Large }
    /// let order = flow::<Size>("order").choose(
    ///     "Which size?",
    ///     [("Small", Size::Small), ("Large", Size::Large)],
    ///     |size, chosen| *size = chosen,
    /// );
    /// ```
    #[must_use]
    pub fn choose<L, T>(
        self,
        question: impl Into<Question>,
        choices: impl IntoIterator<Item = (L, T)>,
        take: impl Fn(&mut S, T) + Send + Sync + 'static,
    ) -> Self
    where
        L: Into<Text>,
        T: Clone + Send + Sync + 'static,
    {
        let mut question = question.into().only_buttons();
        // Options that the question had already stand for nothing here.
        let first = question.options().len();
        let mut data = Vec::new();
        for (label, meaning) in choices {
            let label = label.into();
            let value = value_of(&label);
            question = question.option(label, value);
            data.push(meaning);
        }
        self.step(ask_step(
            None,
            Prompt::Fixed(Arc::new(question)),
            move |state: &mut S, answer| {
                let choice = answer.choice().and_then(|choice| choice.checked_sub(first));
                let meaning =
                    choice.and_then(|choice| data.get(choice)).ok_or_else(Invalid::unexplained)?;
                take(state, meaning.clone());
                Ok(())
            },
        ))
    }

    /// Offers choices as buttons, each of which leads to a label. Nothing else is taken for an
    /// answer.
    ///
    /// ```
    /// use botmesh_core::flow;
    /// let help = flow::<()>("help")
    ///     .menu("What is it about?", [("Prices", "prices"), ("Hours", "hours")])
    ///     .label("prices")
    ///     .end_with("Everything costs one euro.")
    ///     .label("hours")
    ///     .end_with("We are open from 9 to 5.");
    /// ```
    #[must_use]
    pub fn menu<L, T>(
        self,
        question: impl Into<Question>,
        choices: impl IntoIterator<Item = (L, T)>,
    ) -> Self
    where
        L: Into<Text>,
        T: Into<Cow<'static, str>>,
    {
        let mut question = question.into().only_buttons();
        let mut targets: Vec<Target> =
            question.options().iter().map(|option| label_of(option.value())).collect();
        for (label, target) in choices {
            let target = target.into();
            question = question.option(label, target.clone());
            targets.push(Target::Label(target));
        }
        let prompt = Prompt::Fixed(Arc::new(question));
        self.step(Step::Ask(Ask { field: None, prompt, then: Then::Go(targets) }))
    }
}

/// An option that the question of a menu had already leads to the label of its value.
fn label_of(value: &str) -> Target {
    Target::Label(Cow::Owned(value.to_owned()))
}

fn value_of(label: &Text) -> Cow<'static, str> {
    label.outline()
}
