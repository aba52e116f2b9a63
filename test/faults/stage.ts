import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { createDatabase, migrateDatabase } from '../support/databases.ts';
import { type PostgresServer, type PostgresSettings, startPostgres } from '../support/embedded-postgres.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { Fleet } from './fleet.ts';
import { Ledger } from './ledger.ts';

/** What a fault needs; only while a test runs. */
export interface Stage {
  /** Of the database, with no fault in between. */
  readonly url: string;
  readonly ledger: Ledger;
  /** Its workers are on `url` unless they are told otherwise. */
  readonly fleet: Fleet;
}

/** A stage on a server of its own, which may be broken. */
export interface ServerStage extends Stage {
  readonly server: PostgresServer;
}

/** Gives each test of a file empty tables, empty books and a fleet of its own, on the server that all files share. */
export function useStage(): Stage {
  const database = useTestDatabase({ max: 1 });
  return stageOn(() => database.url);
}

/** The same on a server for this file alone. */
export function useServerStage(settings: PostgresSettings = {}): ServerStage {
  let server: PostgresServer | undefined;
  let url: string | undefined;
  beforeAll(async () => {
    // What was acknowledged must survive a crash: the processes' logs do.
    server = await startPostgres({ settings: { synchronous_commit: true, ...settings } });
    const database = await createDatabase(server.url);
    await migrateDatabase(database.url);
    url = database.url;
  });
  afterAll(() => server?.stop());
  const stage = stageOn(() => required(url));
  return {
    get url() {
      return stage.url;
    },
    get ledger() {
      return stage.ledger;
    },
    get fleet() {
      return stage.fleet;
    },
    get server() {
      return required(server);
    },
  };
}

function stageOn(url: () => string): Stage {
  let ledger: Ledger | undefined;
  let fleet: Fleet | undefined;
  beforeAll(async () => {
    ledger = new Ledger(url());
    await ledger.create();
  });
  beforeEach(() => {
    fleet = new Fleet(url());
  });
  afterEach(async () => {
    await fleet?.remove();
    await ledger?.clear();
  });
  afterAll(() => ledger?.close());
  return {
    get url() {
      return url();
    },
    get ledger() {
      return required(ledger);
    },
    get fleet() {
      return required(fleet);
    },
  };
}

function required<T>(value: T | undefined): T {
  if (value === undefined)
    throw new Error('it exists only while the tests run, not while they are collected');
  return value;
}
