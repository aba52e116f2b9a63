import { createQueue, defineJob, defineSchedule, schedulesIn } from 'drizzle-queue';
import { queueSchedules } from './schema.ts';

export const queue = createQueue({ schedules: schedulesIn(queueSchedules) });

export const reportSales = defineJob('report-sales');

/** In earnest `cron: '0 3 * * *'`; here a night lasts a second. */
export const nightlyReport = defineSchedule('nightly-report', {
  job: reportSales,
  cron: '* * * * * *',
  timeZone: 'Europe/Vienna',
  // Each night has its report, also those in which no worker ran.
  catchUp: 'all',
});
