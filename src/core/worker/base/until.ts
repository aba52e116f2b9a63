/** When a worker ends: when it is stopped, or, as in a drain, once its queues are empty. */
export type Until = 'empty' | 'stopped';
