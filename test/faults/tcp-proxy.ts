import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** What the network does to connections. */
export type Weather =
  /** Passes everything on. */
  | 'fine'
  /** Refuses new connections. */
  | 'refusing'
  /** Accepts new connections and stays silent; on those that there are, nothing is passed on any more. */
  | 'silent';

/** What is lost of a connection that something in between has forgotten, without a word to either end. */
export type Silence = 'both ways' | 'to the client' | 'to the server';

/** One connection through the proxy. */
interface Link {
  readonly client: Socket;
  /** None while the weather was silent when it came. */
  readonly server: Socket | undefined;
  /** Nothing is passed on any more. */
  deaf: boolean;
  /** What was forgotten of it stays so, whatever the weather. */
  forgotten: Silence | undefined;
  /** The answer to what was just passed on is to be swallowed. */
  swallowing: boolean;
}

/** Which statements lose their answers, and how. */
export interface AnswerCuts {
  /** Found in the bytes of the statement. */
  readonly statement: RegExp;
  /** How many of those that match are cut, 0–1. */
  readonly share: number;
  /** The same of COMMITs, of which there are fewer. */
  readonly commitShare: number;
  /** Whether the server gets such a COMMIT, so that only its answer is lost. @default 'answer' */
  readonly commits?: 'commit' | 'answer';
  /** How long the client waits for an answer until it loses the connection. */
  readonly holdMs: number;
}

/** A COMMIT as node-postgres sends it: a simple query, whose length stands before its text. */
const COMMIT = /^Q.{4}commit/is;

/** A TCP proxy before the database server, which can do to connections what networks do. */
export class TcpProxy {
  readonly #server: Server;
  readonly #links = new Set<Link>();
  #weather: Weather = 'fine';
  #target: number;
  /** Every packet, in both directions, comes so much later. */
  delayMs = 0;
  /** Statements whose answers are lost. */
  cuts: AnswerCuts | undefined;
  /** How many COMMITs, or answers to them, were lost. */
  lostCommits = 0;
  /** How many others. */
  lostAnswers = 0;

  private constructor(target: number) {
    this.#target = target;
    this.#server = createServer((client) => this.#accept(client));
  }

  /** @param target the port of the server, on 127.0.0.1 */
  static async start(target: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(target);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get port(): number {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('the proxy does not listen');
    return address.port;
  }

  /** The URL of the database, through the proxy. */
  url(direct: string): string {
    const url = new URL(direct);
    url.port = String(this.port);
    return url.href;
  }

  /** From now on new connections go to another server. */
  set target(port: number) {
    this.#target = port;
  }

  /** Fine weather breaks the connections that were silenced: whatever lay in between has forgotten them. */
  set weather(weather: Weather) {
    this.#weather = weather;
    for (const link of this.#links) {
      if (weather === 'silent') link.deaf = true;
      else if (link.deaf && link.forgotten === undefined) this.#destroy(link);
      else link.deaf = false;
    }
  }

  /** How many connections there are of which nothing is forgotten. */
  get remembered(): number {
    return [...this.#links].filter(({ forgotten }) => forgotten === undefined).length;
  }

  /** Forgets a connection, taken at random, or all. New ones are not affected. */
  forget(silence: Silence, which: 'one' | 'all'): void {
    const links = [...this.#links].filter(({ forgotten }) => forgotten === undefined);
    const one = links[Math.floor(Math.random() * links.length)];
    for (const link of which === 'all' ? links : one === undefined ? [] : [one]) link.forgotten = silence;
  }

  /** Holds back what the servers send on the connections that there are, until {@link letThrough}. */
  withhold(): void {
    for (const { server } of this.#links) server?.pause();
  }

  letThrough(): void {
    for (const { server } of this.#links) server?.resume();
  }

  /** Breaks every connection. */
  cut(): void {
    for (const link of this.#links) this.#destroy(link);
  }

  /** The servers' ends of silenced connections are closed, as its keepalives would have found; clients hear nothing of it. */
  abandon(): void {
    for (const link of this.#links) if (link.deaf) link.server?.destroy();
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #accept(client: Socket): void {
    client.on('error', () => {});
    if (this.#weather === 'refusing') {
      client.destroy();
      return;
    }
    const deaf = this.#weather === 'silent';
    const server = deaf ? undefined : connect(this.#target, '127.0.0.1');
    const link: Link = { client, server, deaf, forgotten: undefined, swallowing: false };
    this.#links.add(link);
    for (const socket of [client, server]) {
      socket?.setNoDelay(true);
      socket?.on('error', () => {});
      // What one end has closed is closed for the other, unless nothing is passed on any more.
      socket?.on('close', () => {
        const lost = socket === client ? lostToServer(link) : lostToClient(link);
        if (!lost) this.#destroy(link);
        // The server's end of a forgotten one stays open, with its locks, until all are cut.
        else if (socket === client && link.forgotten === undefined) this.#links.delete(link);
      });
    }
    client.on('data', (bytes) => void this.#toServer(link, bytes));
    server?.on('data', (bytes) => void this.#toClient(link, bytes));
  }

  async #toServer(link: Link, bytes: Buffer): Promise<void> {
    const { cuts } = this;
    const text = cuts ? bytes.toString('latin1') : '';
    const commits = COMMIT.test(text);
    const share = commits ? cuts?.commitShare : cuts?.statement.test(text) ? cuts.share : 0;
    if (cuts && Math.random() < (share ?? 0)) {
      link.swallowing = true;
      if (commits) this.lostCommits++;
      else this.lostAnswers++;
      if (commits && cuts.commits === 'commit') {
        this.#destroy(link);
        return;
      }
      setTimeout(() => this.#destroy(link), cuts.holdMs);
    }
    // Timers of the same length fire in the order in which they were set, so bytes stay in theirs.
    if (this.delayMs > 0) await delay(this.delayMs);
    if (!lostToServer(link)) link.server?.write(bytes);
  }

  async #toClient(link: Link, bytes: Buffer): Promise<void> {
    if (this.delayMs > 0) await delay(this.delayMs);
    if (!lostToClient(link) && !link.swallowing) link.client.write(bytes);
  }

  #destroy(link: Link): void {
    this.#links.delete(link);
    // A reset for the client, as from a middlebox, rather than a goodbye.
    if (!link.client.destroyed) link.client.resetAndDestroy();
    link.server?.destroy();
  }
}

function lostToServer({ deaf, forgotten }: Link): boolean {
  return deaf || forgotten === 'both ways' || forgotten === 'to the server';
}

function lostToClient({ deaf, forgotten }: Link): boolean {
  return deaf || forgotten === 'both ways' || forgotten === 'to the client';
}
