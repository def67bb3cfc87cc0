//! The state of the dashboard, and its changes by keys, independent of terminal and kernel.

use super::palette::{Palette, State};
use crate::flows::view::{FlowReport, NamedFlow};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use sluice_kernel::status::SubscriberSearch;
use sluice_observe::flows::By;
use sluice_observe::rates::{
    ClassRates, DirectionRates, ForwardRates, InterfaceRates, Selection, SiteRates, SubscriberOrder, SubscriberRates,
    SubscriberView, TreeRates,
};
use sluice_observe::{History, Rates};

/// The content of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pane {
    /// Classes and their rates.
    Classes,
    /// The discipline's state of classes.
    Discipline,
    /// Rules and their matches.
    Rules,
    /// Flows.
    Flows,
    /// Sites and subscribers.
    Subscribers,
}

/// A row of a tree.
#[derive(Clone, Copy)]
pub enum TreeRow<'a> {
    /// A site.
    Site(&'a SiteRates),
    /// A subscriber.
    Subscriber(&'a SubscriberRates),
}

/// The order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// The numbers of classes, which is the order of the policy.
    Class,
    /// The rate of packets that left.
    Rate,
    /// Bytes in the queue.
    Backlog,
    /// The 99th percentile of waits.
    Wait,
    /// Drops.
    Drops,
}

impl Sort {
    const ALL: [Sort; 5] = [Sort::Class, Sort::Rate, Sort::Backlog, Sort::Wait, Sort::Drops];

    /// The name on the screen.
    pub fn name(self) -> &'static str {
        match self {
            Sort::Class => "class",
            Sort::Rate => "rate",
            Sort::Backlog => "queue",
            Sort::Wait => "wait",
            Sort::Drops => "drops",
        }
    }

    fn next(self) -> Sort {
        let place = Sort::ALL.iter().position(|one| *one == self).unwrap_or(0);
        Sort::ALL[(place + 1) % Sort::ALL.len()]
    }

    fn key(self, class: &ClassRates) -> f64 {
        match self {
            Sort::Class => -f64::from(class.id),
            Sort::Rate => class.sent_bps,
            Sort::Backlog => class.backlog.bytes as f64,
            Sort::Wait => class.sojourn.map_or(-1.0, |waits| waits.p99_us),
            Sort::Drops => class.dropped_pps,
        }
    }
}

/// The options of the flow pane.
#[derive(Debug, Clone, Copy)]
pub struct FlowOptions {
    /// The rank of flows.
    pub by: By,
    /// Number of flows.
    pub top: usize,
    /// Whether host names are asked for.
    pub resolve: bool,
    /// Whether the flow pane is shown first.
    pub first: bool,
}

impl Default for FlowOptions {
    fn default() -> FlowOptions {
        FlowOptions { by: By::Rate, top: 100, resolve: false, first: false }
    }
}

/// The next step after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Draw again.
    Draw,
    /// End.
    Quit,
}

/// The dashboard.
pub struct App {
    pub palette: Palette,
    pub pane: Pane,
    pub sort: Sort,
    pub reverse: bool,
    pub filter: String,
    /// Whether keys go into the filter.
    pub typing: bool,
    pub paused: bool,
    pub help: bool,
    /// The only interface to show, if one is chosen.
    pub only: Option<String>,
    /// The chosen row, among visible rows.
    pub chosen: usize,
    pub rates: Rates,
    /// Flows, once they have been read.
    pub flows: Option<FlowReport>,
    pub flow_options: FlowOptions,
    pub history: History,
    /// Time between two samples, seconds.
    pub interval_s: f64,
    /// Error of the last sample.
    pub trouble: Option<String>,
    pub zone: jiff::tz::TimeZone,
}

/// A visible class and its place.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    pub interface: &'a InterfaceRates,
    pub direction: &'a DirectionRates,
    pub class: &'a ClassRates,
}

impl App {
    pub fn new(color: bool, interval_s: f64, zone: jiff::tz::TimeZone) -> App {
        App {
            palette: Palette::new(color),
            pane: Pane::Classes,
            sort: Sort::Class,
            reverse: false,
            filter: String::new(),
            typing: false,
            paused: false,
            help: false,
            only: None,
            chosen: 0,
            rates: Rates::default(),
            flows: None,
            flow_options: FlowOptions::default(),
            history: History::default(),
            interval_s,
            trouble: None,
            zone,
        }
    }

    /// Takes the rates of the last interval. While paused, the screen stays and the history goes on.
    pub fn take(&mut self, rates: Rates) {
        self.history.push(&rates);
        self.trouble = None;
        if !self.paused {
            self.rates = rates;
        }
    }

    /// Takes the flows of the last interval.
    pub fn take_flows(&mut self, report: FlowReport) {
        if !self.paused {
            self.flows = Some(report);
        }
    }

    /// The visible interfaces.
    pub fn interfaces(&self) -> impl Iterator<Item = &InterfaceRates> {
        let wanted = |one: &&InterfaceRates| self.only.as_ref().is_none_or(|only| *only == one.interface);
        self.rates.interfaces.iter().filter(wanted)
    }

    /// The visible classes of a direction, in order.
    pub fn classes<'a>(&self, interface: &'a InterfaceRates, direction: &'a DirectionRates) -> Vec<&'a ClassRates> {
        let filter = self.filter.to_lowercase();
        let all = interface.interface.to_lowercase().contains(&filter) || direction.direction.contains(&filter);
        let wanted = |class: &&ClassRates| all || class.name.to_lowercase().contains(&filter);
        let mut classes: Vec<&ClassRates> = direction.classes.iter().filter(wanted).collect();
        classes.sort_by(|a, b| self.sort.key(b).total_cmp(&self.sort.key(a)));
        if self.reverse {
            classes.reverse();
        }
        classes
    }

    /// Every visible row, from top to bottom.
    pub fn rows(&self) -> Vec<Row<'_>> {
        let mut rows = Vec::new();
        for interface in self.interfaces() {
            for direction in shown_directions(interface) {
                let classes = self.classes(interface, direction);
                rows.extend(classes.into_iter().map(|class| Row { interface, direction, class }));
            }
        }
        rows
    }

    /// The chosen row.
    pub fn chosen_row(&self) -> Option<Row<'_>> {
        let rows = self.rows();
        rows.get(self.chosen.min(rows.len().saturating_sub(1))).copied()
    }

    /// The visible rows of a tree: sites as they stand below each other, then subscribers in order.
    pub fn tree_rows<'a>(&self, tree: &'a TreeRates) -> Vec<TreeRow<'a>> {
        let search = SubscriberSearch::new(&self.filter);
        let order = match self.sort {
            Sort::Class => SubscriberOrder::Table,
            Sort::Rate => SubscriberOrder::Rate,
            Sort::Backlog | Sort::Wait => SubscriberOrder::Queue,
            Sort::Drops => SubscriberOrder::Drops,
        };
        let descending = order.is_descending() != self.reverse;
        let view = SubscriberView::All;
        let subscribers = tree.selected(&Selection { search: &search, site: None, view, order, descending });
        let sites = tree.sites.iter().filter(|site| search.finds_name(&site.name)).map(TreeRow::Site);
        sites.chain(subscribers.into_iter().map(TreeRow::Subscriber)).collect()
    }

    /// The chosen row of a tree, and its interface.
    pub fn chosen_tree_row(&self) -> Option<(&str, TreeRow<'_>)> {
        let trees = self.interfaces().filter_map(|one| Some((one.interface.as_str(), one.tree.as_ref()?)));
        let mut rows =
            trees.flat_map(|(interface, tree)| self.tree_rows(tree).into_iter().map(move |row| (interface, row)));
        rows.nth(self.chosen)
    }

    /// Whether every interface has subscribers.
    pub fn has_trees_alone(&self) -> bool {
        !self.rates.interfaces.is_empty() && self.rates.interfaces.iter().all(|one| one.tree.is_some())
    }

    /// Handles a key.
    pub fn key(&mut self, key: KeyEvent) -> Action {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return if key.code == KeyCode::Char('c') { Action::Quit } else { Action::Draw };
        }
        if self.typing {
            self.type_into_filter(key.code);
            return Action::Draw;
        }
        if self.help {
            self.help = false;
            return if key.code == KeyCode::Char('q') { Action::Quit } else { Action::Draw };
        }
        match key.code {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Char('?' | 'h') => self.help = true,
            KeyCode::Char(' ' | 'p') => self.paused = !self.paused,
            KeyCode::Char('s') => self.sort = self.next_sort(),
            KeyCode::Char('S') => self.reverse = !self.reverse,
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Esc => {
                self.filter.clear();
                self.only = None;
            }
            KeyCode::Char('c') => self.pane = Pane::Classes,
            KeyCode::Char('d') => self.toggle(Pane::Discipline),
            KeyCode::Char('r') => self.toggle(Pane::Rules),
            KeyCode::Char('f') => self.toggle(Pane::Flows),
            KeyCode::Char('u') => self.toggle(Pane::Subscribers),
            KeyCode::Char('b') if self.pane == Pane::Flows => self.next_rank(),
            KeyCode::Char('n') if self.pane == Pane::Flows => self.flow_options.resolve = !self.flow_options.resolve,
            KeyCode::Char('i') | KeyCode::Tab => self.next_interface(),
            KeyCode::Up | KeyCode::Char('k') => self.chosen = self.chosen.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.chosen += 1,
            KeyCode::PageUp => self.chosen = self.chosen.saturating_sub(10),
            KeyCode::PageDown => self.chosen += 10,
            KeyCode::Home => self.chosen = 0,
            KeyCode::End => self.chosen = usize::MAX,
            _ => {}
        }
        self.chosen = self.chosen.min(self.last_row());
        Action::Draw
    }

    /// The forwards that the filter and the chosen interface leave, each with its interface's name.
    pub fn forwards(&self) -> Vec<(&str, &ForwardRates)> {
        let filter = self.filter.to_lowercase();
        let wanted = |(interface, forward): &(&str, &ForwardRates)| {
            [*interface, &forward.name].iter().any(|name| name.to_lowercase().contains(&filter))
        };
        let all =
            self.interfaces().flat_map(|one| one.forwards.iter().map(|forward| (one.interface.as_str(), forward)));
        all.filter(wanted).collect()
    }

    /// The flows that the filter and the chosen interface leave.
    pub fn chosen_flows<'a>(&self, report: &'a FlowReport) -> Vec<&'a NamedFlow> {
        let filter = self.filter.to_lowercase();
        let wanted = |named: &&NamedFlow| {
            let only = self.only.as_ref().is_none_or(|only| *only == named.flow.interface);
            let text = format!(
                "{} {} {} {} {} {}",
                named.ends(),
                named.kind(),
                named.flow.class_name,
                named.flow.rule.as_deref().unwrap_or_default(),
                named.owner().unwrap_or_default(),
                named.flow.interface
            );
            only && text.to_lowercase().contains(&filter)
        };
        report.flows.iter().filter(wanted).collect()
    }

    fn last_row(&self) -> usize {
        let rows = match self.pane {
            Pane::Rules => self.interfaces().map(|one| one.rules.len() + 1).sum(),
            Pane::Classes | Pane::Discipline => self.rows().len(),
            Pane::Flows => self.flows.as_ref().map_or(0, |report| self.chosen_flows(report).len()),
            Pane::Subscribers => {
                self.interfaces().filter_map(|one| Some(self.tree_rows(one.tree.as_ref()?).len())).sum()
            }
        };
        rows.saturating_sub(1)
    }

    fn toggle(&mut self, pane: Pane) {
        self.pane = if self.pane == pane { Pane::Classes } else { pane };
        self.chosen = 0;
    }

    /// The next order. Waits of subscribers are not measured.
    fn next_sort(&self) -> Sort {
        match self.sort.next() {
            Sort::Wait if self.pane == Pane::Subscribers => Sort::Drops,
            next => next,
        }
    }

    fn next_rank(&mut self) {
        self.flow_options.by = match self.flow_options.by {
            By::Rate => By::Bytes,
            By::Bytes => By::Pkts,
            By::Pkts => By::Rate,
        };
    }

    fn type_into_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => {
                self.typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(letter) if self.filter.len() < 40 => self.filter.push(letter),
            _ => {}
        }
        self.chosen = 0;
    }

    fn next_interface(&mut self) {
        let names: Vec<&str> = self.rates.interfaces.iter().map(|one| one.interface.as_str()).collect();
        let next = match &self.only {
            None => names.first(),
            Some(only) => names.iter().position(|name| name == only).and_then(|place| names.get(place + 1)),
        };
        self.only = next.map(|name| (*name).to_owned());
        self.chosen = 0;
    }
}

/// The directions of an interface that have something to show.
pub fn shown_directions(interface: &InterfaceRates) -> impl Iterator<Item = &DirectionRates> {
    let busy =
        |one: &&DirectionRates| one.queued || one.classes.iter().any(|class| class.sent.pkts + class.dropped.pkts > 0);
    interface.directions.iter().filter(busy)
}

/// The state of a class.
pub fn state_of(class: &ClassRates) -> State {
    let late = |target: f64| class.sojourn.is_some_and(|waits| waits.p50_us > target);
    if class.dropped_pps > 0.0 {
        State::Bad
    } else if class.marked_pps > 0.0
        || class.backlog_fill.is_some_and(|fill| fill > 0.8)
        || class.target_us.is_some_and(late)
    {
        State::Strained
    } else if class.sent_pps > 0.0 || class.backlog.pkts > 0 {
        State::Good
    } else {
        State::Idle
    }
}
