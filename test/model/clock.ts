import type { Connection } from '../support/test-database.ts';

/** A schema that comes before `pg_catalog`, so that statements read its clock. */
const SCHEMA = `
  create schema clock;
  create table clock.shift (by interval not null);
  insert into clock.shift values ('0');
  create function clock.statement_timestamp() returns timestamptz language sql stable
    as 'select pg_catalog.statement_timestamp() + s.by from clock.shift as s';`;

/** Gives all of these connections a clock that can be moved on; the first makes it. */
export async function shareClock(connections: readonly [Connection, ...Connection[]]): Promise<void> {
  await connections[0].client.unsafe(SCHEMA);
  for (const { client } of connections) await client`set search_path = clock, pg_catalog, public`;
}

/** So many minutes pass at once, for everybody. */
export async function passMinutes({ client }: Connection, minutes: number): Promise<void> {
  await client`update clock.shift set by = by + ${minutes} * interval '1 minute'`;
}

/** The clock goes right again. */
export async function resetClock({ client }: Connection): Promise<void> {
  await client`update clock.shift set by = '0'`;
}
