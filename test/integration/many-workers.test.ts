import { manyWorkers } from './many-workers.ts';

// The more of them, the more they meet; two are in the slow tests.
manyWorkers(20);
