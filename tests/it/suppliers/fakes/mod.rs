pub mod airalo;
pub mod esim_access;
