import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { appendFile, chown, mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * @typedef {object} ClusterOptions
 * @property {string} native the folder with PostgreSQL's `bin/`, `lib/` and `share/`
 * @property {Record<string, string | number | boolean>} settings lines of `postgresql.conf`
 * @property {boolean} filled whether there is something in the data directory already
 *
 * @typedef {import('./server-user.ts').ServerUser} ServerUser
 *
 * @typedef {object} Program a running initdb or postgres
 * @property {import('node:child_process').ChildProcess} process
 * @property {boolean} running
 * @property {string[]} log the last lines of its output
 * @property {Promise<number | null>} ended resolves with the exit code
 */

/** How many lines of a program's output are kept to explain a failure. */
const LOG_LINES = 100;
/** How often a server's start is tried again with another port (or the same one, on a restart). */
const PORT_ATTEMPTS = 20;
/** A start takes a second; crash recovery, which is part of a restart, may take longer. */
const START_DEADLINE_MS = 60_000;

/** One data directory with the server on it, and everything else that they need, in one temporary folder. */
export class PostgresCluster {
  /** The folder, which the server's user owns. */
  directory;
  /** @type {ServerUser | undefined} */
  #user;
  #data;
  #native = '';
  /** @type {number | undefined} */
  #port;
  /** @type {Program | undefined} */
  #program;
  #removed = false;

  /**
   * @param {string} directory
   * @param {ServerUser | undefined} user
   */
  constructor(directory, user) {
    this.directory = directory;
    this.#user = user;
    this.#data = join(directory, 'data');
  }

  /**
   * Creates the folder, with nothing in it yet.
   *
   * @param {ServerUser | undefined} user
   */
  static async create(user) {
    const directory = await mkdtemp(join(tmpdir(), 'drizzle-queue-postgres-'));
    if (user) await chown(directory, user.uid, user.gid);
    return new PostgresCluster(directory, user);
  }

  /**
   * Creates the data directory and starts the server.
   *
   * @param {ClusterOptions} options
   * @returns {Promise<number>} the port
   */
  async start({ native, settings, filled }) {
    this.#native = native;
    if (!filled) await this.#initialise();
    // In the file rather than on the command line, which ALTER SYSTEM could not override.
    await appendFile(join(this.#data, 'postgresql.conf'), configuration(settings));
    return this.restart();
  }

  async #initialise() {
    const initdb = this.#run('initdb', [
      ...['--pgdata', this.#data, '--username', 'postgres', '--auth', 'trust'],
      ...['--encoding', 'UTF8', '--locale', 'C', '--no-sync'],
    ]);
    if ((await initdb.ended) !== 0) throw failure('initdb failed', initdb);
  }

  /**
   * Starts the server, on the port that it had before, after shutting it down if it is running.
   *
   * @returns {Promise<number>} the port
   */
  async restart() {
    await this.#shutDown();
    for (let attempt = 1; ; attempt++) {
      const port = this.#port ?? (await freePort());
      const server = await this.#launch(port);
      if (server.running) {
        this.#port = port;
        return port;
      }
      // Between the choice of a port (or the server's end) and now, another process may have taken it.
      const portTaken = server.log.some((line) => line.includes('could not bind'));
      if (!portTaken || attempt === PORT_ATTEMPTS) throw failure('postgres did not start', server);
      if (this.#port !== undefined) await delay(250);
    }
  }

  /** Ends the server as a crash would: without telling clients, and without a checkpoint. */
  async crash() {
    // PostgreSQL itself kills what has not ended 5 seconds after SIGQUIT.
    await this.#end(['SIGQUIT', 8000], ['SIGKILL', 10_000]);
  }

  /** Ends whatever runs, also in the middle of `start()`, for good, and deletes the folder. */
  async remove() {
    this.#removed = true;
    await this.#shutDown();
    // The retries are for a process that was killed but still writes its last file.
    await rm(this.directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }

  async #shutDown() {
    await this.#end(['SIGINT', 5000], ['SIGQUIT', 8000], ['SIGKILL', 10_000]);
  }

  /**
   * Sends the signals one after the other until the program has ended.
   *
   * @param {[signal: NodeJS.Signals, patience: number][]} steps
   */
  async #end(...steps) {
    const program = this.#program;
    for (const [signal, patience] of steps) {
      if (!program?.running) return;
      program.process.kill(signal);
      await Promise.race([program.ended, delay(patience, undefined, { ref: false })]);
    }
    if (program?.running) throw failure('PostgreSQL does not end', program);
  }

  /**
   * Starts postgres and waits until it accepts connections or has ended.
   *
   * @param {number} port
   */
  async #launch(port) {
    const server = this.#run('postgres', [
      ...['-D', this.#data, '-p', String(port)],
      // No Unix socket: its path would have to be short, and /tmp/.s.PGSQL.5432 would be shared with other servers.
      ...['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='],
    ]);
    const deadline = Date.now() + START_DEADLINE_MS;
    while (server.running && !(await this.#isReady(server))) {
      if (Date.now() > deadline) throw failure('postgres does not become ready', server);
      await Promise.race([server.ended, delay(10)]);
    }
    return server;
  }

  /**
   * Reads the server's state where pg_ctl reads it, too, which is independent of what the server logs.
   *
   * @param {Program} server
   */
  async #isReady(server) {
    const content = await readFile(join(this.#data, 'postmaster.pid'), 'utf8').catch(() => '');
    const lines = content.split('\n');
    // The file of a crashed server is still there until its successor overwrites it.
    return lines[0] === String(server.process.pid) && lines[7]?.trim() === 'ready';
  }

  /**
   * @param {'initdb' | 'postgres'} name
   * @param {string[]} args
   * @returns {Program}
   */
  #run(name, args) {
    if (this.#removed) throw new Error('the server is being removed');
    const child = spawn(join(this.#native, 'bin', name), args, {
      ...this.#user,
      // PostgreSQL's programs fail where they cannot enter the current directory.
      cwd: this.directory,
      env: environment(),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    /** @type {string[]} */
    const log = [];
    for (const stream of [child.stdout, child.stderr]) {
      let rest = '';
      stream.setEncoding('utf8').on('data', (text) => {
        const lines = (rest + text).split('\n');
        rest = lines.pop() ?? '';
        log.push(...lines);
        log.splice(0, log.length - LOG_LINES);
      });
    }
    child.on('error', (error) => log.push(error.message));
    /** @type {Promise<number | null>} */
    const ended = new Promise((resolve) => {
      // Not 'exit', which comes before the last lines of output; and as each process of the server has inherited the
      // output, 'close' tells that all have ended.
      child.on('close', (code) => {
        program.running = false;
        resolve(code);
      });
    });
    const program = { process: child, running: true, log, ended };
    this.#program = program;
    return program;
  }
}

/**
 * @param {string} message
 * @param {Program} program
 */
function failure(message, program) {
  return new Error([message, ...program.log].join('\n  '));
}

/** @param {ClusterOptions['settings']} settings */
function configuration(settings) {
  return Object.entries(settings)
    .map(([name, value]) => `\n${name} = '${String(value).replaceAll("'", "''")}'`)
    .join('');
}

/** This process's environment without what changes the behaviour of PostgreSQL's programs. */
function environment() {
  const kept = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('PG') && !name.startsWith('LC_'),
  );
  return { ...Object.fromEntries(kept), LC_ALL: 'C' };
}

/**
 * A port which nobody listens on.
 *
 * Not one that the system picks: those are also given to outgoing connections, so that a client which keeps trying to
 * reach a crashed server could end up connected to itself, and hold the port.
 */
async function freePort() {
  for (;;) {
    const port = randomInt(20_000, 32_000);
    if (await isFree(port)) return port;
  }
}

/**
 * @param {number} port
 * @returns {Promise<boolean>}
 */
function isFree(port) {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}
