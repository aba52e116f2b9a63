/** The live page: the visitor's app, with buttons for what happens to it. */
import { sql } from 'drizzle-orm';
import MIGRATION from '../../drizzle/0000_queue_tables.sql?raw';
import { Connection, drizzleOn } from './connection.ts';
import { CREATE_ORDERS, orders, queue, sendReceipt } from './jobs.ts';
import type { Control } from './protocol.ts';
import { readTables } from './read-tables.ts';
import { fill, showRows } from './show-rows.ts';
import { WorkerProcess } from './worker-process.ts';

const FIRST_HANDLER = `export default async function ({ payload, job, signal }) {
  await new Promise((resolve) => setTimeout(resolve, 4000));
  return \`a receipt for \${payload.item}\`;
}
`;
const ITEMS = ['tea', 'honey', 'a kettle', 'two cups', 'biscuits'];
const MAX_WORKERS = 4;
const LOOK_EVERY_MS = 250;
const MAX_LINES = 100;

/** Makes the page work; returns what ends all of it. */
export function open(document: Document): () => void {
  const page = new LivePage(document);
  return () => page.close();
}

class LivePage {
  readonly #document: Document;
  readonly #workers: WorkerProcess[] = [];
  readonly #closed = new AbortController();
  #database: Worker | undefined;
  #connections = 0;
  #orders = 0;
  #started = 0;

  constructor(document: Document) {
    this.#document = document;
    this.#find('handler', HTMLTextAreaElement).value = FIRST_HANDLER;
    this.#onClick('start-database', 'status', () => this.#startDatabase());
    this.#onClick('apply', 'handler-says', async () => {
      const { value } = this.#find('handler', HTMLTextAreaElement);
      for (const worker of this.#workers) worker.replaceHandler(value);
      this.#say('handler-says', this.#workers.length === 0 ? 'The next worker starts with it.' : 'Sent.');
    });
    this.#onClick('start-worker', 'app-says', async () => this.#startWorker());
  }

  close(): void {
    this.#closed.abort();
    for (const worker of [...this.#workers]) worker.kill();
    this.#database?.terminate();
  }

  async #startDatabase(): Promise<void> {
    this.#find('start-database', HTMLButtonElement).disabled = true;
    this.#say('status', 'PostgreSQL starts …');
    this.#database = new Worker(new URL('./database-worker.ts', import.meta.url), { type: 'module' });
    this.#database.addEventListener('error', ({ message }) =>
      this.#say('status', `PostgreSQL did not start: ${message}`),
    );
    const connection = new Connection(this.#connect().port);
    await connection.exec(MIGRATION);
    await connection.exec(CREATE_ORDERS);
    const db = drizzleOn(connection);

    const order = async (rollsBack: boolean): Promise<number> => {
      const item = ITEMS[this.#orders++ % ITEMS.length] ?? 'tea';
      return await db.transaction(async (tx) => {
        const [row] = await tx.insert(orders).values({ item }).returning();
        if (row === undefined) throw new Error('the order was not inserted');
        const { id } = await queue.enqueue(tx, sendReceipt, { orderId: row.id, item });
        if (rollsBack) throw new Error('the card was declined');
        return id;
      });
    };
    this.#onClick('enqueue', 'app-says', async () => {
      this.#say('app-says', `Committed: job ${await order(false)} and its order.`);
    });
    this.#onClick('roll-back', 'app-says', async () => {
      const reason = await order(true).then(String, (error: Error) => error.message);
      this.#say('app-says', `Rolled back (${reason}): neither an order nor a job.`);
    });
    this.#onClick('enqueue-many', 'app-says', async () => {
      for (let count = 0; count < 10; count++) await order(false);
      this.#say('app-says', 'Committed: ten orders and ten jobs.');
    });
    this.#find('controls', HTMLFieldSetElement).disabled = false;
    const { rows } = await db.execute(sql`select split_part(version(), ' on ', 1) as server`);
    this.#say('status', `Runs here: ${rows[0]?.server}.`);
    this.#keepShowing(db).catch((error: unknown) => this.#say('status', String(error)));
  }

  /** Connects to the database, as a driver would over a socket. */
  #connect(): { readonly port: MessagePort; readonly disconnect: () => void } {
    const connection = ++this.#connections;
    const { port1, port2 } = new MessageChannel();
    const control = (message: Control, transfer: Transferable[] = []) =>
      this.#database?.postMessage(message, transfer);
    control({ type: 'connected', connection, port: port1 }, [port1]);
    return { port: port2, disconnect: () => control({ type: 'disconnected', connection }) };
  }

  #startWorker(): void {
    const name = `worker-${++this.#started}`;
    const item = this.#document.createElement('li');
    const { port, disconnect } = this.#connect();
    const worker = new WorkerProcess({
      name,
      port,
      handler: this.#find('handler', HTMLTextAreaElement).value,
      item,
      onLog: (text) => this.#log(`${name} ${text}`),
      onHandler: (error) => this.#say('handler-says', error ?? 'Used from the next attempt on.'),
      onEnd: () => {
        // What an operating system does with the sockets of a process that has ended.
        disconnect();
        this.#workers.splice(this.#workers.indexOf(worker), 1);
        if (this.#closed.signal.aborted) return;
        this.#find('start-worker', HTMLButtonElement).disabled = false;
        // The button that was pressed is no more.
        this.#find('start-worker', HTMLButtonElement).focus();
      },
    });
    this.#workers.push(worker);
    this.#find('workers', HTMLUListElement).append(item);
    this.#find('start-worker', HTMLButtonElement).disabled = this.#workers.length >= MAX_WORKERS;
  }

  async #keepShowing(db: ReturnType<typeof drizzleOn>): Promise<void> {
    while (!this.#closed.signal.aborted) {
      if (!this.#document.hidden) {
        const tables = await readTables(db);
        showRows(this.#find('jobs', HTMLTableElement), 'queue_jobs', tables.jobs);
        showRows(this.#find('results', HTMLTableElement), 'queue_results', tables.results);
        showRows(this.#find('registered', HTMLTableElement), 'queue_workers', tables.workers);
        showRows(this.#find('orders', HTMLTableElement), 'orders', tables.orders);
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    }
  }

  #log(text: string): void {
    const log = this.#find('log', HTMLDivElement);
    const line = this.#document.createElement('div');
    const atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 5;
    log.append(fill(line, text));
    if (log.children.length > MAX_LINES) log.firstElementChild?.remove();
    if (atEnd) log.scrollTop = log.scrollHeight;
  }

  #onClick(id: string, place: string, act: () => Promise<void>): void {
    const onClick = () => act().catch((error: unknown) => this.#say(place, String(error)));
    this.#find(id, HTMLButtonElement).addEventListener('click', onClick, { signal: this.#closed.signal });
  }

  #say(id: string, text: string): void {
    fill(this.#find(id, HTMLElement), text);
  }

  #find<T extends HTMLElement>(id: string, type: new () => T): T {
    const element = this.#document.getElementById(id);
    if (!(element instanceof type)) throw new Error(`The page has no #${id}`);
    return element;
  }
}
