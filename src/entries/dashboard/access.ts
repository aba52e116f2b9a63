import type { QueueTables } from '../../core/schema/index.ts';
import {
  checkObject,
  checkText,
  type JobScope,
  MAX_NAME_BYTES,
  ownColumnsOf,
  ownWanted,
  shown,
} from '../../internal.ts';

/**
 * What can be done: `cancel` jobs, `force` the end of a running one, `redrive` discarded ones, `fork` a new
 * one from a step, `runNow` scheduled ones, `pause` and `resume` a queue, `schedule`: pause, resume or run a
 * schedule, `limit`: set one, `unblock` a group.
 */
export type DashboardAction =
  | 'cancel'
  | 'force'
  | 'redrive'
  | 'fork'
  | 'runNow'
  | 'pause'
  | 'resume'
  | 'schedule'
  | 'limit'
  | 'unblock';

export const ACTIONS: readonly DashboardAction[] = [
  'cancel',
  'force',
  'redrive',
  'fork',
  'runNow',
  'pause',
  'resume',
  'schedule',
  'limit',
  'unblock',
];

/** Who a user is, and what they may see and do. */
export interface DashboardAccess {
  /** For `onAction`, such as a user's name. */
  readonly actor?: string | undefined;
  /** The actions that are allowed; `'write'`: every one. @default none: read only */
  readonly can?: 'write' | Readonly<Partial<Record<DashboardAction, boolean>>> | undefined;
  /** Only these queues. @default every queue */
  readonly queues?: readonly string[] | undefined;
  /** Only jobs whose own columns have these values, such as `{ tenantId: 7 }`. @default every job */
  readonly where?: Readonly<Record<string, unknown>> | undefined;
}

/**
 * What `authorize` says of a request. `'none'`: no page. `'read'`: every page and no action. `'write'`: every
 * action, too. A `Response` is sent as it is, such as a redirect to a login.
 */
export type Authorization = 'none' | 'read' | 'write' | DashboardAccess | Response;

/** An access whose every part is known. */
export interface Granted {
  readonly access: DashboardAccess;
  readonly actor: string | undefined;
  readonly actions: ReadonlySet<DashboardAction>;
  readonly scope: JobScope;
  /** Whether nothing is hidden from them: counts and settings of the whole database may be shown. */
  readonly whole: boolean;
}

/** What was authorized; `undefined` for nothing. @throws TypeError for an answer that cannot be understood */
export function granted(answer: Authorization, tables: QueueTables): Granted | undefined {
  // An `authorize` that forgets to return something grants nothing.
  if (answer === 'none' || answer === undefined || answer === null) return undefined;
  if (answer === 'read' || answer === 'write')
    return granted({ can: answer === 'write' ? answer : {} }, tables);
  if (answer instanceof Response) throw new TypeError('a Response grants nothing');
  const access = isPlainObject(answer) ? answer : refuse(answer);
  const { actor, can = {}, queues, where } = access;
  for (const name of Object.keys(access)) {
    // A misspelt `where` must not mean every tenant.
    if (!['actor', 'can', 'queues', 'where'].includes(name))
      throw new TypeError(
        `createDashboard: authorize returned an object with the unknown property '${name}'`,
      );
  }
  for (const name of ['queues', 'where'] as const) {
    if (name in access && access[name] === undefined)
      throw new TypeError(
        `createDashboard: authorize returned an object whose ${name} is undefined; leave it out`,
      );
  }
  if (queues !== undefined) {
    if (!Array.isArray(queues))
      throw new TypeError(`createDashboard: queues of authorize must be an array, got ${shown(queues)}`);
    for (const queue of queues) checkText('createDashboard: queues of authorize', queue, MAX_NAME_BYTES);
  }
  return {
    access,
    actor: actor === undefined ? undefined : String(actor),
    actions: new Set(can === 'write' ? ACTIONS : ACTIONS.filter((action) => can[action] === true)),
    scope: { queues, own: where === undefined ? [] : wanted(where, tables) },
    whole: queues === undefined && where === undefined,
  };
}

/** An array, a date or a promise has no field that is wrong, so it would read as an access to everything. */
function isPlainObject(answer: unknown): boolean {
  if (typeof answer !== 'object' || answer === null || Array.isArray(answer)) return false;
  const prototype: unknown = Object.getPrototypeOf(answer);
  // Not compared with `Object.prototype`: test runners and other realms have one of their own.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function wanted(where: Readonly<Record<string, unknown>>, tables: QueueTables): JobScope['own'] {
  const own = ownColumnsOf(tables.queueJobs);
  const what = 'createDashboard: where of authorize';
  const names = Object.entries(checkObject(what, where));
  if (names.length === 0) throw new TypeError(`${what} must name a column`);
  for (const [name, value] of names) {
    if (!own.some(({ key }) => key === name)) throw new TypeError(`${what}: unknown own column '${name}'`);
    // A user without a tenant must not see every tenant.
    if (value === undefined) throw new TypeError(`${what}: ${name} is undefined; give a value`);
  }
  return ownWanted(own, where);
}

function refuse(answer: unknown): never {
  throw new TypeError(
    "createDashboard: authorize must return 'none', 'read', 'write', an access or a Response; " +
      `got ${shown(answer)}`,
  );
}
