import { type Database, sqlStateOf, type Transaction, type TransactionSettings } from './executor.ts';
import { isPool, type PgPool, type TakenClient, take } from './pooled-client.ts';

/**
 * Runs a function in a transaction of the database, or in a savepoint of a transaction, as `db.transaction`
 * does. All transactions that the library begins are begun here.
 *
 * On a pool of node-postgres, or of neon-serverless, the connection is given back even if `begin` fails, and
 * one that breaks does not end the process. drizzle-orm 0.45 itself loses a connection for good with each
 * `begin` that fails ([#6241](https://github.com/drizzle-team/drizzle-orm/issues/6241)), so that crashes of
 * the server emptied the pools of workers, and adds no listener for the errors of a connection. One whose
 * transaction may still be open, since the end of it had no answer, is closed.
 *
 * Where the connection breaks, Drizzle throws that its `rollback` or its last statement failed. What broke
 * it is thrown instead.
 *
 * @param lost rejects when no answer is waited for any longer
 * @throws whatever `db.transaction` throws, or `lost`
 */
export async function transact<T>(
  db: Database,
  run: (tx: Transaction) => Promise<T>,
  lost?: Promise<never>,
  settings?: TransactionSettings,
): Promise<T> {
  // A database with replicas is a plain object around this one.
  const primary: Database = Object.hasOwn(db, '$primary') ? Reflect.get(db, '$primary') : db;
  const session: unknown = 'session' in primary ? primary.session : undefined;
  const client: unknown = Reflect.get(Object(session), 'client');
  let thrown: unknown;
  const noting = async (tx: Transaction): Promise<T> => {
    try {
      return await run(tx);
    } catch (error) {
      thrown = error;
      throw error;
    }
  };
  if (!isPool(client)) {
    const loss = noteLoss(client);
    try {
      return await unlessLost(db.transaction(noting, settings), lost);
    } catch (error) {
      throw causeOf(error, thrown, loss.error);
    } finally {
      loss.forget();
    }
  }
  const noted = new NotedClient(client);
  const view: Database = Object.create(primary, {
    session: { value: Object.create(Object(session), { client: { value: noted.pool } }) },
  });
  try {
    const result = await unlessLost(view.transaction(noting, settings), lost);
    noted.giveBack();
    return result;
  } catch (error) {
    // What the function threw has been rolled back, and so has what the server has refused.
    const isOver = error === thrown || sqlStateOf(error) !== undefined;
    noted.giveBack(isOver ? undefined : error);
    throw causeOf(error, thrown, noted.loss);
  }
}

async function unlessLost<T>(answer: Promise<T>, lost: Promise<never> | undefined): Promise<T> {
  return lost === undefined ? await answer : await Promise.race([answer, lost]);
}

/** What has ended a transaction. @param loss what broke its connection */
function causeOf(error: unknown, thrown: unknown, loss: unknown): unknown {
  const first = queryOf(error)?.startsWith('rollback') ? (thrown ?? error) : error;
  // A statement on a broken connection fails without a reason.
  const hasReason = queryOf(first) === undefined || sqlStateOf(first) !== undefined;
  return hasReason ? first : (loss ?? first);
}

/** The statement of one of Drizzle's own errors. */
function queryOf(error: unknown): string | undefined {
  const query: unknown = error instanceof Error ? Reflect.get(error, 'query') : undefined;
  return typeof query === 'string' ? query : undefined;
}

/** What a single connection of node-postgres says when it breaks. */
function noteLoss(client: unknown): { readonly error: unknown; forget(): void } {
  const loss: { error: unknown; forget(): void } = { error: undefined, forget: () => undefined };
  const [on, removeListener]: unknown[] = [
    Reflect.get(Object(client), 'on'),
    Reflect.get(Object(client), 'removeListener'),
  ];
  if (typeof on !== 'function' || typeof removeListener !== 'function') return loss;
  const note = (error: unknown) => {
    loss.error ??= error;
  };
  Reflect.apply(on, client, ['error', note]);
  // One that is broken may still say so again.
  loss.forget = () => {
    if (loss.error === undefined) Reflect.apply(removeListener, client, ['error', note]);
  };
  return loss;
}

/** The connection that Drizzle takes of a pool for one transaction. It is given back here instead. */
class NotedClient {
  /** A view of the pool that Drizzle takes for one, whatever its class. */
  readonly pool: object;
  #taken: TakenClient | undefined;
  /** Why Drizzle would close it. */
  #told: unknown;
  /** What broke it. */
  loss: unknown;
  #isGivenBack = false;

  constructor(pool: PgPool) {
    const connect = async (): Promise<unknown> => {
      this.#taken = await take(pool, (error) => {
        this.loss ??= error;
      });
      // It comes after the transaction was given up.
      if (this.#isGivenBack) {
        this.#taken.release();
        throw new Error('No answer is waited for any longer');
      }
      // The pool puts its own there at the next checkout.
      this.#taken.client.release = (error) => {
        this.#told ??= error;
      };
      return this.#taken.client;
    };
    // Drizzle goes by the name of the class where a pool is of another copy of the driver.
    const named: object = Object.create(pool, { constructor: { value: { name: 'Pool' } } });
    this.pool = Object.create(named, {
      // With a callback it is a part of `pool.query`, for which the pool gives back what it takes.
      connect: {
        value: (callback?: unknown) => (callback ? Reflect.apply(pool.connect, pool, [callback]) : connect()),
      },
    });
  }

  /** @param error why it is closed */
  giveBack(error?: unknown): void {
    this.#isGivenBack = true;
    this.#taken?.release(this.#told ?? error);
  }
}
