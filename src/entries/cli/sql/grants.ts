import { namesIn, type TablePlace } from './table-names.ts';

/** The roles of an app, by what they do. */
export interface Roles {
  readonly web: string;
  readonly worker: string;
  readonly reader: string;
  readonly admin: string;
}

/** The features of an app that have tables of their own. */
export interface Granted {
  readonly control?: boolean;
  readonly metrics?: boolean;
  readonly workflows?: boolean;
}

/** The least rights that each role needs, as the guide "Schema" lists them. */
export function grantsSql(
  place: TablePlace,
  { web, worker, reader, admin }: Roles,
  features: Granted,
): string {
  const { at } = namesIn(place);
  const on = (...tables: string[]) => tables.map(at).join(', ');
  const all = [...new Set([web, worker, reader, admin])].join(', ');
  const usage = place.schema === undefined ? [] : [`grant usage on schema ${place.schema} to ${all};`];
  const lines = [
    ...usage,
    '-- to enqueue',
    `grant insert on ${on('jobs')} to ${web};`,
    `grant select (id, queue, kind, unique_key, run_at) on ${on('jobs')} to ${web};`,
    `grant usage on sequence ${on('jobs_id_seq')} to ${web};`,
    '-- to work; a worker says at its start what it lacks',
    `grant select, update, delete on ${on('jobs')} to ${worker};`,
    `grant select, insert, update, delete on ${on('results', 'workers')} to ${worker};`,
    `grant select on ${on('pauses')} to ${worker};`,
    '-- to read: find, list, paused, and a dashboard without buttons',
    `grant select on ${on('jobs', 'results', 'workers', 'pauses')} to ${reader};`,
    '-- to intervene: cancel, redrive, pause and resume; and to read',
    `grant select, insert, update, delete on ${on('jobs', 'results')} to ${admin};`,
    `grant select, insert, delete on ${on('pauses')} to ${admin};`,
    `grant select on ${on('workers')} to ${admin};`,
  ];
  const control = [
    '-- the same with schedules, limits and keys: only for what is used',
    `grant insert on ${on('notes')} to ${web};`,
    `grant select (group_key) on ${on('jobs')} to ${web};`,
    `grant select, insert, update on ${on('keys')} to ${web};`,
    `grant select, update on ${on('jobs')} to ${web};`,
    `grant insert on ${on('jobs')} to ${worker};`,
    `grant select, insert, update, delete on ${on('schedules')} to ${worker};`,
    `grant select on ${on('limits')} to ${worker};`,
    `grant select, insert, update on ${on('usage')} to ${worker};`,
    `grant select, insert, update, delete on ${on('groups', 'holds', 'notes')} to ${worker};`,
    `grant select, update, delete on ${on('keys')} to ${worker};`,
    `grant select on ${on('schedules', 'limits', 'usage', 'groups', 'holds')} to ${reader};`,
    `grant select, insert, update, delete on ${on('schedules', 'limits')} to ${admin};`,
    `grant select on ${on('usage', 'workers', 'groups')} to ${admin};`,
    `grant select, delete on ${on('holds')} to ${admin};`,
    `grant select, insert on ${on('notes')} to ${admin};`,
  ];
  const metrics = [
    '-- the same with metrics: to work and to read',
    `grant select, insert, update, delete on ${on('metrics')} to ${worker};`,
    `grant select on ${on('metrics')} to ${reader};`,
  ];
  const workflows = [
    '-- the same with workflows: only for what is used',
    `grant select, insert, update, delete on ${on('steps', 'mailboxes')} to ${worker};`,
    `grant select, insert, update, delete on ${on('batches', 'waits', 'tallies')} to ${worker};`,
    `grant insert on ${on('jobs')} to ${worker};`,
    `grant usage on sequence ${on('batches_id_seq')} to ${worker};`,
    'grant select (id, queue, kind, unique_key, worker_id, claimed_at, run_at, blockers) ' +
      `on ${on('jobs')} to ${web};`,
    `grant update (run_at) on ${on('jobs')} to ${web};`,
    `grant select, insert, update on ${on('mailboxes')} to ${web};`,
    `grant select, insert, update on ${on('batches')} to ${web};`,
    `grant select, insert on ${on('waits')} to ${web};`,
    `grant usage on sequence ${on('batches_id_seq')} to ${web};`,
    `grant select, insert on ${on('tallies')} to ${web};`,
    `grant select on ${on('steps', 'mailboxes', 'batches', 'waits')} to ${reader};`,
    `grant select, insert, update on ${on('tallies')} to ${admin};`,
    `grant select, insert on ${on('waits')} to ${admin};`,
    `grant select, insert, delete on ${on('steps')} to ${admin};`,
    `grant select, insert, update on ${on('mailboxes')} to ${admin};`,
    `grant select, update on ${on('batches')} to ${admin};`,
  ];
  return [
    ...lines,
    ...(features.control ? control : []),
    ...(features.metrics ? metrics : []),
    ...(features.workflows ? workflows : []),
  ].join('\n');
}
