//! The address on which the server listens, and whether it is allowed.

use crate::options::Options;
use sluice_kernel::{Error, Result};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};

const SHAPE: &str = "give an address and a port, such as 127.0.0.1:8080 or [::1]:8080";

/// Reads `--listen`.
pub fn address(text: &str) -> Result<SocketAddr> {
    let wrong = |what: &str| Error::input(format!("--listen {text}: {what}")).help(SHAPE);
    if let Some(port) = text.strip_prefix("localhost:") {
        let port = port.parse().map_err(|_| wrong("the port is not a number from 0 to 65535"))?;
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    text.parse().map_err(|_| match text.parse::<IpAddr>() {
        Ok(_) => wrong("the port is missing"),
        Err(_) => wrong("this is not an address with a port"),
    })
}

/// Refuses to show the machine to others without a secret, and a secret without encryption.
pub fn refuse_exposure(address: SocketAddr, options: &Options) -> Result<()> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    let missing = match (&options.token_file, &options.tls) {
        (Some(_), Some(_)) => return Ok(()),
        (None, Some(_)) => "no token",
        (Some(_), None) => "no TLS",
        (None, None) => "neither a token nor TLS",
    };
    Err(Error::input(format!("--listen {address}: others can reach this address, and there is {missing}")).help(
        "add --token-file FILE and --tls-cert FILE --tls-key FILE; or listen on 127.0.0.1 and come through \
         `ssh -L 8080:127.0.0.1:8080 HOST`",
    ))
}

/// Opens the port.
pub fn open(address: SocketAddr) -> Result<TcpListener> {
    let listener = TcpListener::bind(address).map_err(|error| {
        let refused = |kind: fn(String) -> Error, what: &str| kind(format!("cannot listen on {address}: {what}"));
        match error.kind() {
            ErrorKind::AddrInUse => refused(Error::input, "another program has this port").help(format!(
                "choose another with --listen {}:PORT, or find the process that uses it: ss -ltnp 'sport = :{}'",
                shown(address.ip()),
                address.port()
            )),
            ErrorKind::AddrNotAvailable => {
                refused(Error::input, "no interface has this address").help("`ip address` shows those that there are")
            }
            ErrorKind::PermissionDenied => {
                refused(Error::input, "this port is not allowed").help("choose one from 1024 on")
            }
            _ => refused(Error::system, &error.to_string()),
        }
    })?;
    listener
        .set_nonblocking(true)
        .map_err(|error| Error::system(format!("preparing the socket on {address}: {error}")))?;
    Ok(listener)
}

fn shown(ip: IpAddr) -> String {
    if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::Files;

    #[test]
    fn addresses_have_ports() {
        assert_eq!(address("127.0.0.1:80").map(|a| a.to_string()).ok(), Some("127.0.0.1:80".to_owned()));
        assert_eq!(address("localhost:0").map(|a| a.to_string()).ok(), Some("127.0.0.1:0".to_owned()));
        assert_eq!(address("[::1]:8080").map(|a| a.port()).ok(), Some(8080));
        for (text, what) in [
            ("127.0.0.1", "the port is missing"),
            ("::1", "the port is missing"),
            ("localhost:http", "not a number"),
            ("127.0.0.1:99999", "not an address"),
            ("somewhere:80", "not an address"),
            ("", "not an address"),
        ] {
            let error = address(text).expect_err(text);
            assert!(error.what.contains(what), "{text}: {}", error.what);
            assert_eq!((error.exit_code(), error.cure.as_deref()), (2, Some(SHAPE)));
        }
    }

    #[test]
    fn only_loopback_goes_without_token_and_tls() {
        let tls = || Some(Files { cert: "c".into(), key: "k".into() });
        let with = |token: bool, tls| Options {
            listen: String::new(),
            token_file: token.then(|| "t".into()),
            tls,
            counted: Vec::new(),
        };
        let outside: SocketAddr = ([0, 0, 0, 0], 80).into();
        for (options, missing) in [
            (with(false, None), "neither a token nor TLS"),
            (with(true, None), "no TLS"),
            (with(false, tls()), "no token"),
        ] {
            let error = refuse_exposure(outside, &options).expect_err(missing);
            assert!(error.what.ends_with(missing), "{}", error.what);
            assert_eq!(error.exit_code(), 2);
        }
        assert!(refuse_exposure(outside, &with(true, tls())).is_ok());
        assert!(refuse_exposure(([127, 3, 0, 1], 80).into(), &with(false, None)).is_ok());
    }
}
