import { appendFile, readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { integer, several, text } from '../arguments.ts';
import { type Answer, type Call, call } from '../context.ts';
import type { ExitCode } from '../exit-code.ts';
import { Failure, misused } from '../failure.ts';
import { type Granted, grantsSql } from '../sql/grants.ts';
import { partitionsSql } from '../sql/partitions.ts';
import { placeOf } from '../sql/table-names.ts';
import { tuningSql } from '../sql/tuning.ts';

interface PlaceFlags {
  readonly prefix?: string;
  readonly schema?: string;
  readonly append?: string;
}

interface PartitionFlags extends PlaceFlags {
  readonly list?: readonly string[];
  readonly hash?: number;
}

interface GrantFlags extends PlaceFlags, Granted {
  readonly web?: string;
  readonly worker?: string;
  readonly reader?: string;
  readonly admin?: string;
}

/** `sql`: what drizzle-kit cannot express, to paste into a custom migration. It runs nothing. */
export function addSql(program: Command, end: (code: ExitCode) => void): void {
  const group = program
    .command('sql')
    .description('print SQL that drizzle-kit cannot express, for `drizzle-kit generate --custom`');
  const placed = (name: string, what: string) =>
    group
      .command(name)
      .description(what)
      .option('--prefix <prefix>', 'the prefix of the tables (default: queue_)', text)
      .option('--schema <schema>', 'their Postgres schema', text)
      .option('--append <file>', 'add it to this migration instead of printing it', text);
  call<PlaceFlags>(
    placed('tuning', 'storage settings for many jobs per second'),
    (called) => print(called, tuningSql(placeOf(called.flags))),
    end,
  );
  call<PartitionFlags>(
    placed('partitions', 'partition jobs and results by queue, and move all rows')
      .option('--list <queue>', 'a partition for this queue, and one for the rest; may be repeated', several)
      .option('--hash <count>', 'this many partitions, by a hash of the queue', integer(2, 1_000)),
    partitions,
    end,
  );
  const role = (name: string) => `the name of the role, instead of app_${name}`;
  call<GrantFlags>(
    placed('grants', 'the least privileges that each role needs')
      .option('--web <role>', role('web'), text)
      .option('--worker <role>', role('worker'), text)
      .option('--reader <role>', role('reader'), text)
      .option('--admin <role>', role('admin'), text)
      .option('--control', 'include schedules, limits and keys')
      .option('--metrics', 'include metrics')
      .option('--workflows', 'include steps, signals, flows and batches'),
    grants,
    end,
  );
}

async function partitions(called: Call<PartitionFlags>): Answer {
  const { list, hash } = called.flags;
  const place = placeOf(called.flags);
  if (list !== undefined && hash === undefined)
    return await print(called, partitionsSql(place, { list: [...new Set(list)] }));
  if (hash !== undefined && list === undefined) return await print(called, partitionsSql(place, { hash }));
  throw misused('sql partitions: give either --list with a queue, or --hash with a number');
}

async function grants(called: Call<GrantFlags>): Answer {
  const { web = 'app_web', worker = 'app_worker', reader = 'app_reader', admin = 'app_admin' } = called.flags;
  const quoted = (role: string) =>
    /^[a-z_][a-z0-9_]*$/.test(role) ? role : `"${role.replaceAll('"', '""')}"`;
  const roles = { web: quoted(web), worker: quoted(worker), reader: quoted(reader), admin: quoted(admin) };
  return await print(called, grantsSql(placeOf(called.flags), roles, called.flags));
}

async function print({ flags, output }: Call<PlaceFlags>, sql: string): Answer {
  if (flags.append !== undefined) {
    await append(flags.append, sql);
    if (output.json) await output.document({ sql, file: flags.append });
    else await output.write(`Added to ${flags.append}\n`);
  } else if (output.json) await output.document({ sql });
  // Also after `>>`: the file that drizzle-kit makes ends in a comment, without a break.
  else await output.write(`\n${sql}\n`);
  return undefined;
}

async function append(file: string, sql: string): Promise<void> {
  const before = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw new Failure(`${file} cannot be read: ${error.message}`);
    throw new Failure(
      `${file} does not exist; \`npx drizzle-kit generate --custom\` creates it and prints its name`,
    );
  });
  await appendFile(file, `${before === '' || before.endsWith('\n') ? '' : '\n'}${sql}\n`);
}
