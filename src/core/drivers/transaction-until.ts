import type { Transaction } from '../sql/executor.ts';

/** Why a statement is refused; `undefined` as long as it is not. */
export type Refusal = () => Error | undefined;

/**
 * A view of a Drizzle transaction that sends nothing once `refusal` returns an error: no query, built or
 * prepared before or after, and nothing of its savepoints, not even their ends. So a function that was left
 * behind cannot write into whatever its connection is used for after the transaction.
 *
 * Drizzle has no way to revoke a transaction. All its queries, of both majors and every driver, are made by
 * the `prepareQuery` of the session that the transaction has as a property; its relational queries hold that
 * session, too.
 */
export function transactionUntil<T extends Transaction>(tx: T, refusal: Refusal): T {
  const session: unknown = Reflect.get(tx, 'session');
  if (typeof session !== 'object' || session === null) return tx;
  const guarded = sessionUntil(session, refusal);
  const view: T = Object.create(tx, {
    session: { value: guarded, enumerable: true },
    transaction: { value: savepointsOf(tx, refusal) },
  });
  for (const name of ['_', 'query', '_query']) {
    const held: unknown = Reflect.get(tx, name);
    if (typeof held !== 'object' || held === null) continue;
    Object.defineProperty(view, name, { value: withSession(held, session, guarded), enumerable: true });
  }
  return view;
}

function sessionUntil(session: object, refusal: Refusal): object {
  const prepareQuery: unknown = Reflect.get(session, 'prepareQuery');
  if (typeof prepareQuery !== 'function') return session;
  return Object.create(session, {
    prepareQuery: {
      value: (...args: unknown[]) => refuseIn(Reflect.apply(prepareQuery, session, args), refusal),
    },
  });
}

/** A prepared query is its builder's alone, so it is changed in its place. */
function refuseIn(prepared: object, refusal: Refusal): object {
  for (const name of ['execute', 'all', 'values']) {
    const run: unknown = Reflect.get(prepared, name);
    if (typeof run !== 'function') continue;
    const guarded = (...args: unknown[]): unknown => {
      const refused = refusal();
      return refused === undefined ? Reflect.apply(run, prepared, args) : Promise.reject(refused);
    };
    // A view of a view wraps it again: both refuse.
    Object.defineProperty(prepared, name, { value: guarded, configurable: true });
  }
  return prepared;
}

/** The object with the guarded session in place of the other, also inside its relational queries. */
function withSession(holder: object, session: object, guarded: object): object {
  const copy: object = Object.create(holder);
  for (const [key, value] of Object.entries(holder)) {
    const holdsIt = typeof value === 'object' && value !== null && Reflect.get(value, 'session') === session;
    const own = value === session ? guarded : holdsIt ? withSession(value, session, guarded) : value;
    Object.defineProperty(copy, key, { value: own, enumerable: true });
  }
  return copy;
}

/**
 * Savepoints whose end is not sent once the transaction is refused: some drivers send it past the session.
 * Then the function of the savepoint never ends, as the driver sees it; its caller gets the refusal.
 */
function savepointsOf(tx: Transaction, refusal: Refusal) {
  return <T>(run: (tx: Transaction) => Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      const refused = refusal();
      if (refused !== undefined) return reject(refused);
      const inside = (savepoint: Transaction) =>
        new Promise<T>((release, rollBack) => {
          const unlessRefused = (end: () => void, leave: (refused: Error) => void) => {
            const refused = refusal();
            if (refused === undefined) end();
            else leave(refused);
          };
          const begun = async () => await run(transactionUntil(savepoint, refusal));
          unlessRefused(() => {
            begun().then(
              (value) => unlessRefused(() => release(value), reject),
              (error) =>
                unlessRefused(
                  () => rollBack(error),
                  () => reject(error),
                ),
            );
          }, reject);
        });
      tx.transaction(inside).then(resolve, reject);
    });
}
