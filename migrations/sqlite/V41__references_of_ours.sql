-- References that we make ourselves begin with a hidden character, so that nobody takes them for a partner's. Here those that
-- members' orders got before: of a form, "portal" and 32 characters; of a list, its id and the number of the line.
UPDATE orders SET reference = char(31) || reference
    WHERE substr(key_id, 1, 4) = 'mbr_'
      AND (substr(reference, 1, 7) = 'portal ' AND length(reference) = 39
           OR EXISTS (SELECT 1 FROM order_batches b WHERE b.id = substr(reference, 1, length(b.id)) AND b.account = orders.account));
UPDATE claims SET reference = char(31) || reference
    WHERE EXISTS (SELECT 1 FROM orders o WHERE o.id = claims.order_id AND o.reference = char(31) || claims.reference);
UPDATE past_claims SET reference = char(31) || reference
    WHERE EXISTS (SELECT 1 FROM orders o WHERE o.id = past_claims.order_id AND o.reference = char(31) || past_claims.reference);
