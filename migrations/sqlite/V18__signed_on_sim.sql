-- A transfer on a simulated chain that a payer signed, by the nonce of the signature.
ALTER TABLE sim_transfers ADD COLUMN payment_nonce TEXT;
