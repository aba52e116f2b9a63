import { library, notExported } from './not-exported.ts';

// Other mistakes in the slow tests.
notExported([
  {
    what: 'exported only one table',
    schema: `export { queueJobs } from ${library};`,
    made: ['queue_jobs'],
    message:
      '"queue_results", "queue_workers", "queue_pauses" do not exist, but other tables of the queue do',
    fix: 'not all tables are exported',
  },
]);
