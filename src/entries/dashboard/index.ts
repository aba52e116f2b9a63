/** The dashboard of a queue: `createDashboard` answers the requests of browsers. Its public names. */

export type { Authorization, DashboardAccess, DashboardAction } from './access.ts';
export { createDashboard, type Dashboard } from './create-dashboard.tsx';
export type { ActionDone, DashboardOptions, LookOptions, QueueOfDashboard } from './options.ts';
export type { JobOfValue, Show, ShownField } from './show.ts';
export { type NodeHandler, type NodeRequest, type NodeResponse, toNode } from './to-node.ts';
