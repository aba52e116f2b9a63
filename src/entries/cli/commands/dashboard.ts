import { createServer, type Server } from 'node:http';
import type { Command } from 'commander';
import { integer } from '../arguments.ts';
import { type Answer, type Context, call, inProject } from '../context.ts';
import { LockedDoor } from '../dashboard-door.ts';
import type { ExitCode } from '../exit-code.ts';
import { Failure } from '../failure.ts';
import { untilInterrupted } from '../interruption.ts';
import { complain } from '../terminal/complain.ts';

interface Flags {
  readonly port?: number;
  readonly readOnly?: boolean;
}

const HOST = '127.0.0.1';
const PORT = 4984;
/** How many further ports are tried when the user has not chosen one. */
const FURTHER_PORTS = 20;
const SHOWN_IDS = 10;

/** `dashboard`: the dashboard in a browser of this machine, behind a token. */
export function addDashboard(program: Command, end: (code: ExitCode) => void): void {
  const command = program
    .command('dashboard')
    .description('serve the dashboard for a browser on this machine, until Ctrl-C')
    .option(
      '-p, --port <port>',
      `the port on ${HOST} (default: ${PORT}, or the next free one)`,
      integer(0, 65_535),
    )
    .option('--read-only', 'read-only: show no buttons');
  call<Flags>(command, (called) => inProject(called, dashboard, { all: true }), end);
}

async function dashboard({ project, flags, output }: Context<Flags>): Answer {
  const { db, queue, shards, config, load, source } = project;
  const { signal, forget } = untilInterrupted();
  try {
    const [{ createDashboard, toNode }] = await Promise.all([
      load.dashboard(),
      // It says in one sentence that the database cannot be reached, or has no tables.
      shards === undefined && queue.paused(db),
    ]);
    const door = new LockedDoor();
    const server = createServer();
    const port = await listen(server, flags.port);
    // As browsers write them: without the port where it is 80.
    const hostOf = (name: string) => new URL(`http://${name}:${port}`).host;
    const hosts = [hostOf(HOST), hostOf('localhost')];
    const pages = createDashboard({
      ...config?.dashboard,
      ...(shards === undefined ? { db, queue } : { queues: shards }),
      hosts,
      basePath: door.path,
      authorize: () => ({ actor: 'drizzle-queue dashboard', can: flags.readOnly === true ? {} : 'write' }),
      onAction: ({ name, action, target, ids, outcome }) =>
        complain(
          [
            ...(name === undefined ? [] : [name]),
            action,
            ...Object.values(target),
            ...someOf(ids),
            outcome,
          ].join(' '),
        ),
    });
    server.on('request', toNode(door.before(pages, hosts)));
    const url = `http://${hostOf(HOST)}${door.path}/?token=${door.token}`;
    if (output.json) await output.record({ url });
    else {
      await output.write(`${output.styled('The dashboard is on', 'bold')} ${url}\n`);
      await output.line(
        `Anyone with this address has access to the queues of ${source}. Press Ctrl-C to stop.`,
        'dim',
      );
    }
    await ended(signal);
    server.close();
    server.closeAllConnections();
    return undefined;
  } finally {
    forget();
  }
}

/** The first of them: an action with many jobs would fill the screen. */
function someOf(ids: readonly number[]): string[] {
  const more = ids.length - SHOWN_IDS;
  return [...ids.slice(0, SHOWN_IDS).map((id) => `#${id}`), ...(more > 0 ? [`and ${more} more`] : [])];
}

async function ended(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

/** Listens on the port that was asked for, or on the first free one. */
async function listen(server: Server, asked: number | undefined): Promise<number> {
  for (let port = asked ?? PORT; ; port++) {
    try {
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject);
        server.listen(port, HOST, () => {
          server.off('error', reject);
          resolve();
        });
      });
      const address = server.address();
      return typeof address === 'object' && address !== null ? address.port : port;
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : undefined;
      if (code === 'EADDRINUSE' && asked === undefined && port < PORT + FURTHER_PORTS) continue;
      if (code === 'EADDRINUSE') throw new Failure(`Port ${port} is in use; choose another with --port`);
      if (code === 'EACCES')
        throw new Failure(`Port ${port} needs privileges that you do not have; choose another with --port`);
      throw error;
    }
  }
}
