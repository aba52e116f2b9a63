import { asyncContext } from '../../testing-face.ts';

/** What is used of PGlite: all that waits for its one connection. */
interface OneConnection {
  query(...args: readonly unknown[]): Promise<unknown>;
  exec(...args: readonly unknown[]): Promise<unknown>;
  transaction(run: (tx: Statements) => Promise<unknown>): Promise<unknown>;
}

type Statements = Pick<OneConnection, 'query' | 'exec'>;

/** A transaction that is open, as the code inside it sees it. */
interface Open {
  isOpen: boolean;
  readonly ended: Promise<void>;
  /** How many of its statements run. */
  running: number;
  /** How many have begun. */
  begun: number;
}

/** For how long a transaction does nothing that waits for its own statement on the database. */
const PATIENCE_MS = 500;

const watched = new WeakSet<object>();
// A test may replace the global one by a fake, which would never ring.
const { setTimeout, clearTimeout } = globalThis;

/**
 * Makes PGlite refuse, within a second, a statement on the database from inside one of its own transactions:
 * there is one connection, so the statement waits for the transaction and the transaction for the statement.
 * Statements from elsewhere wait for their turn as before.
 */
export function refuseSelfWaits(client: object): void {
  if (watched.has(client) || !isOneConnection(client)) return;
  const inside = asyncContext<Open>();
  if (inside === undefined) return;
  watched.add(client);
  const { query, exec, transaction } = client;
  const free = async () => {
    const open = inside.getStore();
    if (open?.isOpen === true) await endOf(open);
  };
  client.query = async (...args) => {
    await free();
    return await query.apply(client, [...args]);
  };
  client.exec = async (...args) => {
    await free();
    return await exec.apply(client, [...args]);
  };
  client.transaction = async (run) => {
    await free();
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const open: Open = { isOpen: true, ended, running: 0, begun: 0 };
    try {
      return await transaction.call(client, (tx) => {
        watch(tx, open);
        return inside.run(open, () => run(tx));
      });
    } finally {
      open.isOpen = false;
      end();
    }
  };
}

function watch(tx: Statements, open: Open): void {
  const { query, exec } = tx;
  const counted =
    (run: Statements['query']): Statements['query'] =>
    async (...args) => {
      open.running++;
      open.begun++;
      try {
        return await run(...args);
      } finally {
        open.running--;
      }
    };
  tx.query = counted(query);
  tx.exec = counted(exec);
}

/** @throws Error once the transaction has done nothing for {@link PATIENCE_MS} */
async function endOf(open: Open): Promise<void> {
  while (open.isOpen) {
    const { begun } = open;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const passed = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, PATIENCE_MS);
    });
    await Promise.race([open.ended, passed]);
    clearTimeout(timer);
    if (open.isOpen && open.running === 0 && open.begun === begun) throw new Error(SELF_WAIT);
  }
}

const SELF_WAIT =
  'A statement uses the database from inside one of its own transactions. PGlite has one connection, so ' +
  'both would wait for each other without end. Use the transaction: a handler has it as ctx.db';

function isOneConnection(client: object): client is OneConnection {
  // Only PGlite's client is an object with a `listen`, as for the drivers.
  return ['query', 'exec', 'transaction', 'listen'].every(
    (name) => typeof Reflect.get(client, name) === 'function',
  );
}
