import type { PGlite, Transaction } from '@electric-sql/pglite';
import type { Answer, Request } from './protocol.ts';

interface Opened {
  readonly tx: Transaction;
  readonly commit: () => void;
  readonly rollBack: (reason: Error) => void;
  /** Settles once PostgreSQL has ended it. */
  readonly ended: Promise<void>;
}

/**
 * The database's end of a connection. When it breaks, its transactions are rolled back before anybody else's statement
 * runs, and it hears nothing more, as with any server.
 */
export class ServedConnection {
  readonly #database: Promise<PGlite>;
  readonly #port: MessagePort;
  readonly #opened = new Map<number, Opened>();
  readonly #unlisten = new Map<string, () => Promise<void>>();
  #broken = false;

  constructor(database: Promise<PGlite>, port: MessagePort) {
    this.#database = database;
    this.#port = port;
    port.onmessage = ({ data }: MessageEvent<Request>) => {
      this.#answer(data).then(
        (result) => this.#post({ id: data.id, result }),
        (error: unknown) => this.#post({ id: data.id, error: errorFields(error) }),
      );
    };
  }

  break(): void {
    this.#broken = true;
    this.#port.close();
    for (const { rollBack } of this.#opened.values()) rollBack(new Error('The connection was lost'));
    for (const unlisten of this.#unlisten.values()) void unlisten();
  }

  async #answer(request: Request): Promise<unknown> {
    const pg = await this.#database;
    switch (request.type) {
      case 'query': {
        const { text, params, rowMode, raw, within } = request;
        const runner = within === undefined ? pg : this.#transaction(within).tx;
        const parsers = Object.fromEntries(raw.map((type) => [type, (value: string) => value]));
        const { rows, fields, affectedRows } = await runner.query(text, [...params], { rowMode, parsers });
        return { rows, fields, affectedRows };
      }
      case 'exec':
        await pg.exec(request.text);
        return;
      case 'begin':
        return await this.#begin(pg, request.id);
      case 'end': {
        const { commit, rollBack, ended } = this.#transaction(request.transaction);
        if (request.commit) commit();
        else rollBack(new Error('rolled back'));
        // PGlite rejects with the reason of a rollback, which its caller knows.
        return await ended.catch((error: unknown) => {
          if (request.commit) throw error;
        });
      }
      case 'listen': {
        const { channel } = request;
        if (this.#unlisten.has(channel)) return;
        const unlisten = await pg.listen(channel, (payload) => this.#post({ channel, payload }));
        if (this.#broken) return await unlisten();
        this.#unlisten.set(channel, unlisten);
        return;
      }
      case 'unlisten':
        await this.#unlisten.get(request.channel)?.();
        this.#unlisten.delete(request.channel);
        return;
    }
  }

  async #begin(pg: PGlite, id: number): Promise<number> {
    await new Promise<void>((open, fail) => {
      const ended = pg.transaction(async (tx) => {
        if (this.#broken) throw new Error('The connection was lost');
        await new Promise<void>((commit, rollBack) => {
          this.#opened.set(id, { tx, commit, rollBack, ended });
          open();
        });
      });
      ended.catch(fail).finally(() => this.#opened.delete(id));
    });
    return id;
  }

  #transaction(id: number): Opened {
    const opened = this.#opened.get(id);
    if (opened === undefined) throw new Error(`There is no transaction ${id}`);
    return opened;
  }

  #post(answer: Answer): void {
    if (!this.#broken) this.#port.postMessage(answer);
  }
}

/** A message carries no classes: the fields of an error, its SQLSTATE among them. */
function errorFields(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { message: String(error) };
  const plain = Object.entries(error).filter(([, value]) => typeof value === 'string');
  return { ...Object.fromEntries(plain), message: error.message };
}
