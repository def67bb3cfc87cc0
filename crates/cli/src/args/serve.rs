//! The options of `sluice serve`.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sluice serve                                     on this machine alone: open the address that it prints
  ssh -L 8080:127.0.0.1:8080 router sluice serve   the same from elsewhere
  sluice serve --listen 192.168.1.1:8443 --token-file /etc/sluice/token \\
      --tls-cert /etc/sluice/cert.pem --tls-key /etc/sluice/key.pem
  sluice serve --count eth0:proto,class            packets that arrive by protocol and class, in /metrics

Without --token-file, a token for this run is made and printed: it is needed to change anything. With it, it is
needed to read as well. Metrics for Prometheus are at /metrics.")]
pub struct Serve {
    /// Address and port; port 0 takes any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub listen: String,
    /// The file whose first line is the secret that clients must send; other users must not be able to read it
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// The server's certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Its private key, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Count what arrives at an interface, with or without a policy, by up to three of proto, class, dscp and verdict, for /metrics
    #[arg(long, value_name = "INTERFACE:KEY")]
    pub count: Vec<String>,
}
