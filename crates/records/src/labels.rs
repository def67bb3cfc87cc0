//! Names of what records have as numbers: interfaces and classes.

/// Names for the rows of a stream.
#[derive(Debug, Clone)]
pub struct Labels {
    interfaces: Vec<String>,
    /// By interface and class.
    classes: Vec<Vec<Option<String>>>,
}

impl Labels {
    /// The names of these interfaces; no class has a name yet.
    pub fn new(interfaces: Vec<String>) -> Labels {
        let classes = vec![Vec::new(); interfaces.len()];
        Labels { interfaces, classes }
    }

    /// Names a class of an interface.
    pub fn name_class(&mut self, interface: usize, class: u8, name: &str) {
        let Some(classes) = self.classes.get_mut(interface) else { return };
        let place = usize::from(class);
        if classes.len() <= place {
            classes.resize(place + 1, None);
        }
        classes[place] = Some(name.to_owned());
    }

    /// Forgets the names of the classes of an interface, as when another policy comes.
    pub fn forget_classes(&mut self, interface: usize) {
        if let Some(classes) = self.classes.get_mut(interface) {
            classes.clear();
        }
    }

    /// The name of an interface.
    pub fn interface(&self, interface: u16) -> Option<&str> {
        self.interfaces.get(usize::from(interface)).map(String::as_str)
    }

    /// The name of a class of an interface.
    pub fn class(&self, interface: u16, class: Option<u8>) -> Option<&str> {
        self.classes.get(usize::from(interface))?.get(usize::from(class?))?.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_where_they_were_given() {
        let mut labels = Labels::new(vec!["eth0".to_owned(), "wg0".to_owned()]);
        labels.name_class(1, 5, "bulk");
        labels.name_class(7, 5, "nowhere");
        assert_eq!(labels.interface(1), Some("wg0"));
        assert_eq!(labels.interface(2), None);
        assert_eq!(labels.class(1, Some(5)), Some("bulk"));
        assert_eq!(labels.class(1, Some(4)), None);
        assert_eq!(labels.class(1, None), None);
        assert_eq!(labels.class(0, Some(5)), None);
        labels.forget_classes(1);
        assert_eq!(labels.class(1, Some(5)), None);
    }
}
