import postgres, { type Sql } from 'postgres';
import { createDatabase, type Database } from '../../test/support/databases.ts';
import type { PostgresServer } from '../../test/support/embedded-postgres.ts';
import type { Fill, System } from './system.ts';

/** A database for one measurement of one system, without a past. */
export class Site {
  private constructor(
    readonly system: System,
    readonly url: string,
    readonly sql: Sql,
    private readonly database: Database,
  ) {}

  static async open(sites: Sites, system: System): Promise<Site> {
    const database = await createDatabase(sites.server.url, { template: await sites.template(system) });
    const sql = postgres(database.url, {
      max: 2,
      onnotice: () => {},
      connection: { application_name: 'bench' },
    });
    return new Site(system, database.url, sql, database);
  }

  /**
   * Puts jobs in, and leaves the tables as they are on a server that had time for its housekeeping.
   *
   * The checkpoint comes first: the first change of a page after a checkpoint writes all of it to the WAL, and that belongs to
   * the filling.
   */
  async fill(fill: Fill): Promise<void> {
    await this.sql`checkpoint`;
    await this.system.fill(this, fill);
    await this.sql`vacuum (analyze)`;
  }

  /** Waits until no job waits or runs; answers when that was, by `process.hrtime` in milliseconds. */
  async emptied(timeoutMs = 30_000): Promise<number> {
    const deadline = performance.now() + timeoutMs;
    while (await this.system.anyLeft(this.sql)) {
      if (performance.now() > deadline) throw new Error(`${this.system.name} has left jobs undone`);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    return Number(process.hrtime.bigint()) / 1e6;
  }

  async close(): Promise<void> {
    await this.sql.end();
    await this.database.drop();
  }
}

/** The databases of one run on one server. */
export class Sites {
  readonly #templates = new Map<System['create'], Promise<string>>();

  constructor(readonly server: PostgresServer) {}

  /** A database with the system's tables, made once. */
  template({ create }: Pick<System, 'create'>): Promise<string> {
    let template = this.#templates.get(create);
    if (template === undefined) {
      template = this.#createTemplate(create);
      this.#templates.set(create, template);
    }
    return template;
  }

  async #createTemplate(create: System['create']): Promise<string> {
    const { name, url } = await createDatabase(this.server.url);
    await create(url);
    return name;
  }
}
