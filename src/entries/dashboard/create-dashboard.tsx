import type { Context } from 'hono';
import { Hono } from 'hono/tiny';
import type { OwnColumns } from '../../core/schema/index.ts';
import { type Executor, MissingMigrationError } from '../../index.ts';
import { describeThrown, type ShownJob, showJob, unlessMissing } from '../../internal.ts';
import { granted } from './access.ts';
import { act } from './actions.ts';
import { pageAnswer, textOf } from './answer.ts';
import { assetAnswer } from './assets/assets.ts';
import { download } from './download.ts';
import { backOf, fieldsOf } from './form-fields.ts';
import { type Child, h } from './html.ts';
import { Links, nameInPath, pathIn } from './links.ts';
import { Looks } from './looks.ts';
import { checkedOptions, type DashboardOptions, type DashboardSettings } from './options.ts';
import { jobId } from './own-job.ts';
import { databasePage } from './pages/database.tsx';
import { errorsPage } from './pages/errors.tsx';
import { flowPage, noFlowPage } from './pages/flow.tsx';
import { flowsPage } from './pages/flows.tsx';
import { jobPage, noJobPage } from './pages/job.tsx';
import { jobsPage } from './pages/jobs.tsx';
import { limitsPage } from './pages/limits.tsx';
import { goingOnPage, manyPage } from './pages/many.tsx';
import { overviewPage } from './pages/overview.tsx';
import { queuesPage } from './pages/queues.tsx';
import { refusedPage } from './pages/refused.tsx';
import { schedulesPage } from './pages/schedules.tsx';
import { workersPage } from './pages/workers.tsx';
import { SlowPage } from './parts/layout.tsx';
import { SAID } from './parts/notice.tsx';
import { MOST_STEPS, STEP_CUT, type StepsOfJob } from './parts/steps.tsx';
import { CUT } from './parts/value.tsx';
import { isOwnRequest, type ProtectedEnv, protectiveHeaders } from './protection.ts';
import { FEW_ROWS_MS, type Found, Searches, UNFIT, UnfitValueError } from './searches.ts';
import { copyOf } from './shared-response.ts';
import { TooManySearchesError } from './turns.ts';
import { limitsOf, schedulesOf, scopeName, type Visit, workflowsOf } from './visit.ts';

/** Answers the requests of a browser. */
export type Dashboard = (request: Request) => Promise<Response>;

/** How long reading one job may take: its values may have a hundred megabytes. */
const JOB_MS = 10_000;

interface Env {
  readonly Variables: { visit: Visit } & ProtectedEnv['Variables'];
}

/**
 * The dashboard of a queue, as a function from a request to a response, for any server that speaks Fetch:
 * pages of HTML that need no script. It uses the app's own database, and sends no queries while no page is
 * open.
 *
 * Under concurrency: all viewers and all callers of `queue.stats` share the counts. They run one statement at
 * a time, each bounded by two seconds; all counts together take at most a quarter of a percent of the time.
 *
 * ```ts
 * const dashboard = createDashboard({ db, queue, basePath: '/admin/queue', authorize });
 * app.all('/admin/queue/*', (c) => dashboard(c.req.raw));
 * ```
 *
 * @throws TypeError for an invalid option
 */
export function createDashboard<TOwn extends OwnColumns>(options: DashboardOptions<TOwn>): Dashboard {
  // What it does with a queue does not depend on the own columns' types.
  const all = checkedOptions(options as unknown as DashboardOptions);
  const apps = all.map((settings) => {
    const links = new Links(settings.base, settings.name);
    const { db, queue } = settings;
    return appOf(settings, links, new Looks(db, queue.tables), new Searches(db, queue.tables));
  });
  return async (request) => {
    const { pathname } = new URL(request.url);
    const found = all.findIndex(({ base, name }) => {
      const path = pathIn(base, pathname);
      return name === undefined || path === nameInPath(name) || path.startsWith(`${nameInPath(name)}/`);
    });
    const [first] = all;
    const app = apps[found];
    if (app !== undefined) return await app.fetch(request);
    const location = new Links(first?.base ?? '', first?.name).to('/');
    // A user who opens the base path has not chosen a queue yet: the first is shown.
    return pathIn(first?.base ?? '', pathname) === '/' && request.method === 'GET'
      ? new Response(null, { status: 303, headers: { location } })
      : new Response('There is no page at this address.', { status: 404 });
  };
}

function appOf(settings: DashboardSettings, links: Links, looks: Looks, searches: Searches): Hono<Env> {
  const app = new Hono<Env>({ getPath: (request) => pathOf(settings, request.url) });
  // Only a user who was let in has a visit, and may know the names.
  const databasesOf = (c: Context<Env>) => (c.get('visit') === undefined ? undefined : settings);
  const refused = async (c: Context<Env>, status: number, title: string, text: string) =>
    await pageAnswer(
      c.req.raw,
      await textOf(refusedPage({ links, title, text, home: status !== 403, databases: databasesOf(c) })),
      status,
    );

  app.use(protectiveHeaders());
  app.use(async (c, next) => {
    const host = c.req.header('host') ?? new URL(c.req.url).host;
    if (settings.hosts?.includes(host) ?? true) return await next();
    return await refused(c, 403, 'Unknown host', 'The dashboard does not answer under this host name.');
  });
  app.use(async (c, next) =>
    isOwnRequest(c.req.raw, settings.trustedOrigins)
      ? await next()
      : await refused(c, 403, 'Refused', REFUSED_FORM),
  );
  app.get(
    '/assets/*',
    async (c, next) => (await assetAnswer(c.req.raw, pathOf(settings, c.req.url))) ?? (await next()),
  );
  app.use(async (c, next) => {
    const answer = await settings.authorize(c.req.raw, settings.name);
    if (answer instanceof Response) {
      c.set('isOfApp', true);
      return await copyOf(answer);
    }
    const allowed = granted(answer, settings.queue.tables);
    if (allowed === undefined) {
      return await refused(c, 403, 'Not allowed', 'Your account has no access to this dashboard.');
    }
    c.set('visit', visitOf({ settings, links, looks, searches, granted: allowed }, c));
    return await next();
  });
  pagesOf(app);
  // Such as a tab that is opened again: nothing is done by it, and what is left stands there.
  app.get('/actions/:name{redrive-cause|[a-z-]+-many}', (c) =>
    c.redirect(links.to(c.req.param('name') === 'redrive-cause' ? '/errors' : '/jobs'), 303),
  );
  app.post('/actions/:name', async (c) => {
    const fields = await fieldsOf(c);
    if (fields === undefined) return await refused(c, 415, 'Not a form', NOT_A_FORM);
    const visit = c.get('visit');
    const acted = await act(visit, c.req.param('name'), fields);
    if (acted.done && acted.goesOn !== undefined)
      return await pageAnswer(c.req.raw, await textOf(goingOnPage(visit, acted.goesOn, fields)));
    if (acted.done) {
      const [path = '/', query = ''] = links.back(acted.to ?? backOf(fields)).split('?');
      const params = new URLSearchParams(query);
      for (const name of SAID) params.delete(name);
      params.set('done', acted.notice);
      if (acted.count !== undefined) params.set('n', String(acted.count));
      if (acted.left !== undefined && acted.left > 0) params.set('left', String(acted.left));
      return c.redirect(`${path}?${params}`, 303);
    }
    if (acted.why === 'refused') return await refused(c, 422, 'Nothing was changed', acted.message);
    if (acted.why === 'forbidden') return await refused(c, 403, 'Not allowed', 'You have read-only access.');
    return await refused(
      c,
      404,
      'Not found',
      'The action or its target was not found or is outside your scope.',
    );
  });
  app.notFound(async (c) => await refused(c, 404, 'Page not found', 'There is no page at this address.'));
  app.onError(async (error, c) => {
    if (error instanceof TooManySearchesError) {
      const answer = await refused(
        c,
        503,
        'Too many searches',
        'Your previous searches are still running. Try again in a few seconds.',
      );
      answer.headers.set('retry-after', '5');
      return answer;
    }
    if (error instanceof UnfitValueError) return await refused(c, 422, 'Invalid filter', UNFIT);
    // Of a failed query the whole error would print its parameters, which may be what `show` hides.
    console.error('drizzle-queue dashboard:', describeThrown(error));
    if (error instanceof MissingMigrationError)
      return await refused(c, 500, 'Tables are missing', error.message);
    return await refused(c, 500, 'Something failed', 'The error is in the server log.');
  });
  return app;
}

const NOT_A_FORM =
  'An action must be sent as a form of at most 24 kB, without characters that PostgreSQL refuses. ' +
  'Nothing was done.';

const REFUSED_FORM =
  'This form was not sent from a page of this dashboard. Behind a proxy that changes the host, add the ' +
  'address that browsers see to trustedOrigins.';

function pagesOf(app: Hono<Env>): void {
  const show = async (c: Context<Env>, page: Child | Promise<Child>, status = 200) =>
    await pageAnswer(c.req.raw, await textOf(page), status);
  app.get('/', (c) => show(c, overviewPage(c.get('visit'))));
  app.get('/jobs', (c) => show(c, jobsPage(c.get('visit'))));
  app.get('/jobs/many', (c) => show(c, manyPage(c.get('visit'))));
  app.get('/jobs/:id{\\d+}', async (c) => {
    const visit = c.get('visit');
    const found = await findShown(visit, c.req.param('id'));
    if (found === undefined) return await show(c, <SlowPage visit={visit} title="Job" />);
    if (found.value !== undefined)
      return await show(c, jobPage(visit, found.value, await stepsOf(visit, found.value)));
    return await show(c, noJobPage(visit, c.req.param('id').slice(0, 20)), 404);
  });
  app.get('/jobs/:id{\\d+}/:field{payload|output|metadata|progress|step}', async (c, next) => {
    const { id, field } = c.req.param();
    const step = field === 'step' ? c.req.query('name') : undefined;
    return (await download(c.get('visit'), jobId(id), { field, step })) ?? (await next());
  });
  app.get('/flows', async (c, next) => {
    const visit = c.get('visit');
    const workflows = visit.granted.whole ? workflowsOf(visit) : undefined;
    return workflows === undefined ? await next() : await show(c, flowsPage(visit, workflows));
  });
  app.get('/flows/:id{\\d+}', async (c, next) => {
    const visit = c.get('visit');
    const [workflows, id] = [workflowsOf(visit), jobId(c.req.param('id'))];
    if (workflows === undefined) return await next();
    const page = id && (await flowPage(visit, workflows, id));
    return page ? await show(c, page) : await show(c, noFlowPage(visit, c.req.param('id').slice(0, 20)), 404);
  });
  app.get('/errors', (c) => show(c, errorsPage(c.get('visit'))));
  app.get('/queues', async (c, next) => {
    const visit = c.get('visit');
    return visit.granted.scope.own.length > 0 ? await next() : await show(c, queuesPage(visit));
  });
  app.get('/workers', async (c, next) => {
    const visit = c.get('visit');
    return visit.granted.scope.own.length > 0 ? await next() : await show(c, workersPage(visit));
  });
  app.get('/schedules', async (c, next) => {
    const visit = c.get('visit');
    const schedules = schedulesOf(visit);
    return schedules === undefined ? await next() : await show(c, schedulesPage(visit, schedules));
  });
  app.get('/limits', async (c, next) => {
    const visit = c.get('visit');
    const limits = limitsOf(visit);
    return limits === undefined ? await next() : await show(c, limitsPage(visit, limits));
  });
  app.get('/database', async (c, next) => {
    const visit = c.get('visit');
    return visit.granted.whole ? await show(c, databasePage(visit)) : await next();
  });
}

function visitOf(
  known: Pick<Visit, 'settings' | 'links' | 'looks' | 'searches' | 'granted'>,
  { req }: Context,
): Visit {
  const { search, searchParams } = new URL(req.url);
  const query = new URLSearchParams(searchParams);
  const kept = new URLSearchParams(search);
  // What an action has said is not part of the page that it leads back to.
  for (const name of SAID) kept.delete(name);
  const path = `${pathOf(known.settings, req.url)}${kept.size === 0 ? '' : `?${kept}`}`;
  const { actor } = known.granted;
  const viewer = JSON.stringify(actor ?? [req.header('cookie'), req.header('authorization')]);
  return { ...known, viewer, path, query, nowMs: Date.now() };
}

function pathOf({ base, name }: DashboardSettings, url: string): string {
  return pathIn(nameInPath(name), pathIn(base, new URL(url).pathname));
}

/** `undefined` for none that they may see. */
async function findShown(visit: Visit, text: string): Promise<Found<ShownJob | undefined> | undefined> {
  const { searches, viewer, settings, granted } = visit;
  const id = jobId(text);
  if (id === undefined) return { value: undefined, at: new Date(visit.nowMs) };
  const show = { id, scope: granted.scope, cut: CUT };
  const name = JSON.stringify(['job', scopeName(visit), id]);
  const look = (db: Executor) => showJob(db, settings.queue.tables, show);
  return await searches.at(viewer, name, JOB_MS, look, FEW_ROWS_MS);
}

/** What the queue's workflows know of a job; `undefined` where the queue has none. */
async function stepsOf(visit: Visit, job: ShownJob): Promise<{ readonly found: StepsOfJob } | undefined> {
  const workflows = workflowsOf(visit);
  if (workflows === undefined) return undefined;
  const { searches, viewer } = visit;
  const { id, queue } = job;
  // The job was found in their scope.
  const name = JSON.stringify(['steps', scopeName(visit), id]);
  const show = { id, queue, cut: STEP_CUT, limit: MOST_STEPS };
  const look = async (db: Executor) => ({
    ...(await workflows.shown(db, show)),
    mailboxes: await workflows.mailboxes(db, id),
    flow: await workflows.flowOf(db, id),
  });
  // The rest of the page needs none of it.
  const answer = await unlessMissing(searches.at(viewer, name, JOB_MS, look, FEW_ROWS_MS));
  return { found: answer?.value };
}
