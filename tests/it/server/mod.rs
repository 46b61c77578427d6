//! The process around the doors: its hosts, jobs, logs and mail, and the pages that may call it.

mod cors;
mod front_door;
mod hosts;
mod jobs;
mod logs;
mod mail_smtp;
mod sandbox;
mod startup;
