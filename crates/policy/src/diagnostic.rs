//! Findings about a policy, errors, warnings and notes, and their rendering with source lines.

use crate::source::{Source, Span};
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::fmt;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The policy is refused.
    Error,
    /// The policy works, but probably not as intended.
    Warning,
    /// A choice was made that the file leaves open.
    Note,
}

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $kind:ident = $slug:literal,)+) => {
        /// The subject of a finding. The slug in brackets after `error`, `warning` or `note` stays the same between
        /// versions; the wording may change.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Kind { $($(#[doc = $doc])+ $kind,)+ }

        impl Kind {
            /// Every kind.
            pub const ALL: &[Kind] = &[$(Kind::$kind,)+];

            /// The kind's name in messages.
            pub fn slug(self) -> &'static str {
                match self { $(Kind::$kind => $slug,)+ }
            }
        }
    };
}

kinds! {
    /// The text is not JSON with comments.
    Syntax = "syntax",
    /// An object has an unknown key.
    UnknownKey = "unknown_key",
    /// An object has a key twice.
    DuplicateKey = "duplicate_key",
    /// A required key is missing.
    MissingKey = "missing_key",
    /// A value has the wrong JSON type.
    WrongType = "wrong_type",
    /// A number is outside its range.
    OutOfRange = "out_of_range",
    /// A word is not one of a key's values.
    UnknownValue = "unknown_value",
    /// The format's version is not supported.
    Version = "version",
    /// A key does not fit the policy's scheduler.
    Scheduler = "scheduler",
    /// The engine does not have the discipline.
    Engine = "engine",
    /// A rate, size or time cannot be read or is outside its range.
    Quantity = "quantity",
    /// A name is empty, too long or has characters that cannot be shown.
    Name = "name",
    /// An address or prefix cannot be read.
    Address = "address",
    /// A prefix has bits set beyond its length.
    HostBits = "host_bits",
    /// Source and destination are of different families.
    AddressFamily = "address_family",
    /// The first port is above the last one, or only the last is given.
    PortRange = "port_range",
    /// A rule has conditions on ports and a protocol without ports.
    PortsWithoutProtocol = "ports_without_protocol",
    /// A rule has a condition that packets of its protocol cannot meet.
    WrongProtocol = "wrong_protocol",
    /// TCP flags are none, or contradict each other.
    TcpFlags = "tcp_flags",
    /// The least length is above the greatest one.
    LengthRange = "length_range",
    /// A rule names a set that does not exist.
    UnknownSet = "unknown_set",
    /// A set holds another set.
    NestedSet = "nested_set",
    /// A set, or a list of a rule, has nothing in it.
    Empty = "empty",
    /// Two keys have the same meaning, or contradict each other.
    Conflict = "conflict",
    /// A class is policed without a ceiling.
    PoliceWithoutCeil = "police_without_ceil",
    /// A class is guaranteed more than its ceiling.
    RateAboveCeil = "rate_above_ceil",
    /// A class has a peak below its ceiling.
    PeakBelowCeil = "peak_below_ceil",
    /// There are no classes.
    NoClasses = "no_classes",
    /// There are more classes or rules than fit.
    TooMany = "too_many",
    /// Two classes have the same id.
    DuplicateId = "duplicate_id",
    /// Two classes have the same name.
    DuplicateName = "duplicate_name",
    /// Two rules have the same priority.
    DuplicatePriority = "duplicate_priority",
    /// One DSCP or mark means two classes.
    DuplicateMapping = "duplicate_mapping",
    /// A rule or `default_class` names a class that does not exist.
    UnknownClass = "unknown_class",
    /// A key does not fit the policy's mode.
    Mode = "mode",
    /// A table beside the policy cannot be read.
    Table = "table",
    /// A set of policies has none for the interface.
    Interface = "interface",
    /// Two forwards listen on the same port.
    ForwardOverlap = "forward_overlap",
    /// A forward's target is where it listens.
    ForwardLoop = "forward_loop",
    /// The guarantees together exceed the link.
    RateSum = "rate_sum",
    /// The limits together exceed what can be queued.
    LimitSum = "limit_sum",
    /// A quantum is smaller than a frame.
    SmallQuantum = "small_quantum",
    /// A limit in bytes is smaller than a frame.
    SmallLimit = "small_limit",
    /// A PIFO's order is coarser than what the policy asks for.
    CoarseRank = "coarse_rank",
    /// No priorities tell which class is the default one, and which the urgent one.
    ClassChosen = "class_chosen",
    /// A rule can never match, because an earlier one takes everything.
    ShadowedRule = "shadowed_rule",
    /// No rule uses a set.
    UnusedSet = "unused_set",
    /// A key is read but changes nothing.
    NoEffect = "no_effect",
    /// A ceiling above the link was lowered to it.
    CeilClamped = "ceil_clamped",
    /// The link's rate is not known, so values that depend on it are not checked.
    LinkRateUnknown = "link_rate_unknown",
    /// `--rate` took the place of the file's link rate.
    LinkRateOverridden = "link_rate_overridden",
    /// Default limits were lowered so that all of them fit.
    LimitsLowered = "limits_lowered",
}

/// The most lines between two places that one snippet shows: rendering takes time for each line.
const MAX_LINES_APART: u32 = 1_000;
/// Places on one line that are further apart are shown by themselves, as policies that a program has written have one line alone.
const MAX_BYTES_APART: usize = 200;

#[derive(Debug, Clone)]
struct Label {
    span: Span,
    text: String,
    /// The text that has the place, if it is another one than that of the [`Diagnostics`].
    source: Option<Source>,
}

/// One finding.
#[derive(Debug, Clone)]
pub struct Diagnostic {
    severity: Severity,
    kind: Kind,
    title: String,
    /// The first label is the finding's own place, the others are related places.
    labels: Vec<Label>,
    help: Vec<String>,
}

impl Diagnostic {
    pub(crate) fn new(severity: Severity, kind: Kind, title: impl Into<String>) -> Diagnostic {
        Diagnostic { severity, kind, title: title.into(), labels: Vec::new(), help: Vec::new() }
    }

    pub(crate) fn error(kind: Kind, title: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Error, kind, title)
    }

    /// Adds a place: the first call the place of the finding, later calls related places.
    pub(crate) fn at(mut self, span: impl Into<Option<Span>>, text: impl Into<String>) -> Diagnostic {
        if let Some(span) = span.into() {
            self.labels.push(Label { span, text: text.into(), source: None });
        }
        self
    }

    /// Says which text has the places that were added so far, but for those of which it is known.
    pub(crate) fn of(mut self, source: &Source) -> Diagnostic {
        for label in self.labels.iter_mut().filter(|label| label.source.is_none()) {
            label.source = Some(source.clone());
        }
        self
    }

    pub(crate) fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help.push(text.into());
        self
    }

    /// The severity of the finding.
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// The subject of the finding.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The finding in one line.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The cures, one for each line of help.
    pub fn cures(&self) -> impl Iterator<Item = &str> {
        self.help.iter().map(String::as_str)
    }

    /// The kind, title and place, which are equal in equal findings of one text.
    pub(crate) fn identity(&self) -> (Kind, &str, Option<usize>) {
        (self.kind, &self.title, self.start())
    }

    /// Byte offset of the finding's place in the text of the [`Diagnostics`]; none if it is in another one.
    pub(crate) fn start(&self) -> Option<usize> {
        self.labels.first().filter(|label| label.source.is_none()).map(|label| label.span.start)
    }

    /// The order in which findings are shown: errors first, each severity by file, the policy's own first, and by place.
    fn order(&self) -> (Severity, Option<&str>, Option<usize>) {
        let first = self.labels.first();
        let file = first.and_then(|label| label.source.as_ref()).map(Source::name);
        (self.severity, file, first.map(|label| label.span.start))
    }

    fn group<'a>(&'a self, source: Option<&'a Source>) -> Group<'a> {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Note => Level::NOTE,
        };
        let mut group = Group::with_title(level.primary_title(&*self.title).id(self.kind.slug()));
        let mut left: Vec<(usize, &Label, &Source)> = self
            .labels
            .iter()
            .enumerate()
            .filter_map(|(i, label)| Some((i, label, label.source.as_ref().or(source)?)))
            .collect();
        // A snippet for each text and for places that are far apart, the finding's own place first.
        while let Some(&(_, first, source)) = left.first() {
            let line = source.line(first.span.start);
            let (own, others): (Vec<_>, Vec<_>) = left.into_iter().partition(|(_, label, of)| {
                let (line_of, apart) = (source.line(label.span.start), label.span.start.abs_diff(first.span.start));
                of.is(source)
                    && line_of.abs_diff(line) <= MAX_LINES_APART
                    && (line_of != line || apart <= MAX_BYTES_APART)
            });
            left = others;
            let spans = own.iter().map(|(_, label, _)| &label.span);
            let shown = source.lines_around(spans);
            let annotations = own.into_iter().map(|(i, label, _)| {
                let kind = if i == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
                let annotation = kind.span(label.span.start - shown.start..label.span.end - shown.start);
                if label.text.is_empty() { annotation } else { annotation.label(&*label.text) }
            });
            let first = source.line(shown.start) as usize;
            let snippet = Snippet::source(&source.text()[shown.clone()]).line_start(first).path(source.name());
            group = group.element(snippet.annotations(annotations));
        }
        group.elements(self.help.iter().map(|help| Level::HELP.message(&**help)))
    }
}

/// A place that a finding points at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Line and column, both from 1, of its first character.
    pub from: (u32, u32),
    /// Line and column, both from 1, of the character after its last one.
    pub to: (u32, u32),
    /// The label of the place; empty if the title says all.
    pub text: String,
}

/// The most findings that are shown; the rest are only counted.
pub(crate) const MAX_SHOWN: usize = 50;

/// Findings about one policy, in the order of the file.
#[derive(Debug, Clone, Default)]
pub struct Diagnostics {
    source: Option<Source>,
    items: Vec<Diagnostic>,
}

impl Diagnostics {
    pub(crate) fn new(source: Option<Source>, mut items: Vec<Diagnostic>) -> Diagnostics {
        for label in items.iter_mut().flat_map(|item| &mut item.labels) {
            label.source = label.source.take().filter(|own| !source.as_ref().is_some_and(|source| source.is(own)));
        }
        items.sort_by(|one, other| one.order().cmp(&other.order()));
        Diagnostics { source, items }
    }

    /// The findings.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.items.iter()
    }

    /// The number of findings.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are no findings.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Whether the policy is refused.
    pub fn has_errors(&self) -> bool {
        self.count(Severity::Error) > 0
    }

    /// The findings without notes.
    pub fn without_notes(&self) -> Diagnostics {
        let kept = self.items.iter().filter(|item| item.severity() != Severity::Note).cloned().collect();
        Diagnostics { items: kept, ..self.clone() }
    }

    /// The number of findings of a severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.items.iter().filter(|item| item.severity == severity).count()
    }

    /// The text of the findings, if they are about one text.
    pub(crate) fn source(&self) -> Option<&Source> {
        self.source.as_ref()
    }

    /// Line and column, both from 1, of a finding's place in its file; `None` if it has no place.
    pub fn line_column(&self, item: &Diagnostic) -> Option<(u32, u32)> {
        let label = item.labels.first()?;
        Some(label.source.as_ref().or(self.source.as_ref())?.line_column(label.span.start))
    }

    /// The places of a finding in the policy's own file: first its own, then related ones. Those in tables beside it are left out.
    pub fn places(&self, item: &Diagnostic) -> Vec<Place> {
        let Some(source) = &self.source else { return Vec::new() };
        let place = |label: &Label| Place {
            from: source.line_column(label.span.start),
            to: source.line_column(label.span.end),
            text: label.text.clone(),
        };
        item.labels.iter().filter(|label| label.source.is_none()).map(place).collect()
    }

    /// The first 50 findings as text, each with file, line, column, the line itself, cause and cure; with ANSI colours if
    /// `color`. Ends in a newline unless empty.
    pub fn render(&self, color: bool) -> String {
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let mut text = String::new();
        for (i, item) in self.items.iter().take(MAX_SHOWN).enumerate() {
            let separator = if i == 0 { "" } else { "\n" };
            text += separator;
            text += &renderer.render(&[item.group(self.source.as_ref())]);
            text += "\n";
        }
        if let Some(more) = self.items.len().checked_sub(MAX_SHOWN).filter(|more| *more > 0) {
            text += &format!("\n... and {more} more\n");
        }
        text
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}
