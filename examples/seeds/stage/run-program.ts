import { fileURLToPath } from 'node:url';
import { databaseServer } from '../../../test/support/database-server.ts';
import { createDatabase } from '../../../test/support/databases.ts';
import { connect, type Db } from './database.ts';

/** Where a program's output goes, line by line. */
export type Say = (line: string) => void;

/** What a program gets: an empty database. */
export interface Stage {
  /** One connection to it. */
  readonly db: Db;
  /** For further connections. */
  readonly url: string;
  readonly say: Say;
}

/** What a program does. It throws when something does not add up. */
export type Program = (stage: Stage) => Promise<void>;

/** Runs a program in the empty database of `url`. */
export async function perform(program: Program, url: string, say: Say): Promise<void> {
  const { db, close } = connect(url);
  try {
    await program({ db, url, say });
  } finally {
    await close();
  }
}

/**
 * Runs a program when its module was started, and not when it was imported: on PostgreSQL from npm, or in a database of its own on
 * the server of DATABASE_URL. The process exits with 1 when the program throws.
 */
export async function runProgram(module: ImportMeta, program: Program): Promise<void> {
  if (process.argv[1] !== fileURLToPath(module.url)) return;
  const server = await databaseServer();
  try {
    const database = await createDatabase(server.url);
    try {
      await perform(program, database.url, console.log);
    } finally {
      await database.drop();
    }
  } finally {
    await server.stop();
  }
}
