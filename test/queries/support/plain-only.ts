import type { Refusal } from './citus-rules.ts';

/** Statements that Citus is never sent, why it would refuse them, and what it is sent instead. */
export const PLAIN_ONLY: Readonly<Record<string, { refused: readonly Refusal[]; instead: string }>> = {
  findDueQuery: { refused: ['lateral'], instead: 'findDueQuery, of one queue' },
  'findDueQuery, of many queues': { refused: ['lateral'], instead: 'findDueQuery, of one queue' },
  findDueGroupsQuery: { refused: ['join', 'lateral'], instead: 'findDueGroupsQuery, of one queue' },
  pruneKeysQuery: { refused: ['lock', 'target'], instead: 'pruneKeysOfQuery' },
  findOverlookedQuery: { refused: ['lateral'], instead: 'findOverlookedQuery, of one queue' },
  pruneResultsQuery: { refused: ['lock', 'target'], instead: 'pruneQueueQuery' },
  redriveJobsQuery: { refused: ['lock', 'target'], instead: 'redriveJobsQuery, filtered' },
  'redriveJobsQuery, of groups': {
    refused: ['lock', 'target'],
    instead: 'redriveJobsQuery, of groups, filtered',
  },
  'redriveJobsQuery, waking': { refused: ['lock', 'target'], instead: 'redriveJobsQuery, filtered' },
  countSomeJobsQuery: { refused: ['lateral'], instead: 'countJobsQuery' },
  findHeadsQuery: { refused: ['lateral', 'recursive'], instead: 'countJobsQuery' },
  'browseJobsQuery, of a key': {
    refused: ['lateral', 'recursive'],
    instead: 'browseJobsQuery, of a key among the newest',
  },
  'browseJobsQuery, of a group': {
    refused: ['lateral', 'recursive'],
    instead: 'browseJobsQuery, of a key among the newest',
  },
  'browseJobsQuery, of ended jobs of a group': {
    refused: ['lateral'],
    instead: 'browseJobsQuery, of a key among the newest',
  },
  countOfGroupQuery: { refused: ['lateral', 'recursive'], instead: 'browseJobsQuery' },
  findBandsQuery: { refused: ['lateral', 'recursive'], instead: 'browseJobsQuery' },
  'findBandsQuery, of a group': { refused: ['lateral', 'recursive'], instead: 'browseJobsQuery' },
  browseByRunAtQuery: { refused: ['lateral'], instead: 'browseJobsQuery' },
  findReadEndQuery: { refused: ['lateral'], instead: 'browseJobsQuery' },
  'findReadEndQuery, of a full page': { refused: ['lateral'], instead: 'browseJobsQuery' },
  findPassedOverQuery: { refused: ['lateral', 'recursive'], instead: 'countJobsQuery' },
  'claimJobsQuery, of a small table': { refused: ['beside'], instead: 'claimJobsQuery' },
  checkWorkersQuery: { refused: ['session'], instead: 'checkWorkersQuery, of known workers' },
  'checkWorkersQuery, beat': { refused: ['session'], instead: 'checkWorkersQuery, of known workers' },
  removeGoneWorkersQuery: { refused: ['beside', 'locked', 'session'], instead: 'removeUnseenWorkerQuery' },
  tidySchedulesQuery: { refused: ['locked'], instead: 'renewSchedulesQuery' },
  // No worker starts there whose queue has groups.
  admitGroupsQuery: { refused: ['columnless', 'ctid'], instead: 'an error' },
  claimGroupedJobsQuery: { refused: ['columnless', 'ctid'], instead: 'an error' },
  'claimGroupedJobsQuery, one after the other': { refused: ['columnless', 'ctid'], instead: 'an error' },
  'claimGroupedJobsQuery, by rates': { refused: ['columnless', 'ctid'], instead: 'an error' },
  'claimGroupedJobsQuery, one after the other by rates': {
    refused: ['columnless', 'ctid'],
    instead: 'an error',
  },
  noteForgottenGroupsQuery: { refused: ['recursive'], instead: 'an error' },
  'insertLimitedJobsQuery, of groups, waking': { refused: ['correlated'], instead: 'insertLimitedJobsQuery' },
  insertTrailingJobsQuery: { refused: ['columnless', 'upsert'], instead: 'an error' },
  'insertTrailingJobsQuery, of groups, waking': { refused: ['columnless', 'upsert'], instead: 'an error' },
};
