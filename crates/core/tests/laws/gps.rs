//! Generalized processor sharing (Parekh and Gallager, IEEE/ACM ToN 1993): the fluid server that the fair disciplines
//! follow. All classes that have bytes are served at once, in proportion to their weights.

pub struct Gps {
    /// Share of each class. A class without any takes no part.
    weights: Vec<f64>,
    /// The backlog of each class, bytes. Infinite for one that always has packets.
    backlog: Vec<f64>,
    served: Vec<f64>,
}

impl Gps {
    pub fn new(weights: Vec<f64>) -> Gps {
        Gps { backlog: vec![0.0; weights.len()], served: vec![0.0; weights.len()], weights }
    }

    pub fn arrive(&mut self, class: usize, bytes: f64) {
        self.backlog[class] += bytes;
    }

    /// The service of the class, bytes.
    pub fn served(&self, class: usize) -> f64 {
        self.served[class]
    }

    /// Serves so many bytes in all, fewer if there are not as many.
    pub fn serve(&mut self, mut bytes: f64) {
        while bytes > 0.0 {
            let busy: Vec<usize> = (0..self.weights.len()).filter(|&class| self.backlog[class] > 0.0).collect();
            let weights: f64 = busy.iter().map(|&class| self.weights[class]).sum();
            // Until the first of them is empty, or the bytes are used up; per unit of weight.
            let first =
                busy.iter().map(|&class| self.backlog[class] / self.weights[class]).fold(f64::INFINITY, f64::min);
            let step = first.min(bytes / weights);
            if busy.is_empty() {
                return;
            }
            for class in busy {
                let share = step * self.weights[class];
                self.served[class] += share;
                // The first class to be empty is empty, whatever rounding says.
                let empty = self.backlog[class] / self.weights[class] <= step;
                self.backlog[class] = if empty { 0.0 } else { self.backlog[class] - share };
            }
            bytes -= step * weights;
        }
    }
}

#[test]
fn the_fluid_is_shared_by_weight_and_what_is_left_goes_to_the_others() {
    let mut gps = Gps::new(vec![1.0, 3.0]);
    gps.arrive(0, f64::INFINITY);
    gps.arrive(1, 300.0);
    gps.serve(200.0);
    assert_eq!((gps.served(0), gps.served(1)), (50.0, 150.0));
    gps.serve(400.0);
    assert_eq!((gps.served(0), gps.served(1)), (300.0, 300.0));
}
