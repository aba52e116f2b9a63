import { randomBytes } from 'node:crypto';
import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { afterAll, beforeAll } from 'vitest';
import { readPages } from '../docs/pages.ts';
import type { Connection, UsedTestDatabase } from '../support/test-database.ts';

/** The roles that the page about the schema speaks of, and one more. */
const NAMES = ['app_web', 'app_worker', 'app_reader', 'app_admin', 'app_runner'] as const;

export type RoleName = (typeof NAMES)[number];

export interface Roles {
  /** A connection pool that logs in as this role. */
  as(name: RoleName): Connection;
  /** SQL of the superuser, in which the page's names stand for these tests' own roles. */
  run(text: string): Promise<void>;
  /** The role's own name on this server. */
  nameOf(name: RoleName): string;
}

/** The tables of `drizzle-queue/schema/control`, `drizzle-queue/schema/metrics` and `drizzle-queue/schema/workflows`. */
const OWN = {
  control: /queue_(schedules|limits|usage|groups|holds|notes|keys)\b/,
  metrics: /queue_metrics\b/,
  workflows: /queue_(steps|mailboxes|batches|waits|tallies)\b/,
};

/** The blocks of SQL on docs/schema.md that hold one of these words: those about some of these tables, or the others. */
export function pageBlocks(words: readonly string[], about: keyof typeof OWN | 'core'): string[] {
  const page = readPages().find(({ path }) => path === 'docs/schema.md');
  const blocks = (page?.blocks ?? [])
    .filter(({ language, code }) => language === 'sql' && words.some((word) => code.includes(word)))
    .map(({ code }) => code)
    .filter((code) =>
      about === 'core' ? !Object.values(OWN).some((own) => own.test(code)) : OWN[about].test(code),
    );
  if (blocks.length === 0) throw new Error('the page has no such SQL');
  return blocks;
}

/**
 * Real roles that log in, with the rights that docs/schema.md grants them on the tables that every queue has, taken from its
 * SQL: blocks that hold one of these words. Roles belong to the whole server, so each test file has its own.
 */
export function useRoles(database: UsedTestDatabase, words: readonly string[]): Roles {
  const connections = new Map<RoleName, Connection>();
  const password = randomBytes(8).toString('hex');
  const nameOf = (name: RoleName) => `${name}_${database.name}`;
  const run = async (text: string) => {
    await database.client.unsafe(
      text.replaceAll(/\bapp_[a-z]+\b(?!\.)/g, (name) => nameOf(name as RoleName)),
    );
  };

  beforeAll(async () => {
    for (const name of NAMES) {
      await run(`create role ${name} login password '${password}'`);
      const url = new URL(database.url);
      url.username = nameOf(name);
      url.password = password;
      const client = postgres(url.href, { max: 4, onnotice: () => {} });
      connections.set(name, { client, db: drizzle({ client }) });
    }
    for (const code of pageBlocks(words, 'core')) await run(code);
  });

  afterAll(async () => {
    await Promise.all([...connections.values()].map(({ client }) => client.end({ timeout: 1 })));
    for (const name of NAMES) await run(`drop owned by ${name}; drop role ${name}`);
  });

  return {
    run,
    nameOf,
    as(name) {
      const connection = connections.get(name);
      if (connection === undefined) throw new Error('the roles exist only while the tests run');
      return connection;
    },
  };
}
