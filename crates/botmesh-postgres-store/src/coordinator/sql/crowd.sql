-- Reserves and releases keys that others compete for, one after the other. They are in the order of
-- their names, in which rows are locked. Whoever holds rows waits for others only shortly: what is
-- undone then goes one by one.
CREATE FUNCTION {p}coordination_decide(
    takes BIGINT[], names BYTEA[], callers BYTEA[], tickets BIGINT[], epochs BIGINT[],
    most BIGINT, held BIGINT, idle BIGINT, grace BIGINT
) RETURNS TABLE (code BIGINT, first BIGINT, second BIGINT, third BIGINT, before BYTEA)
LANGUAGE plpgsql SET lock_timeout = '200ms' AS $$
BEGIN
    FOR place IN 1 .. cardinality(names) LOOP
        IF takes[place] = 1 THEN
            RETURN QUERY SELECT * FROM {p}coordination_ask(1, names[place], callers[place],
                tickets[place], epochs[place], most, held, grace);
        ELSE
            RETURN QUERY SELECT * FROM {p}coordination_release(names[place], callers[place],
                tickets[place], idle, held, grace);
        END IF;
    END LOOP;
END $$
