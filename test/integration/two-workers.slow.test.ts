import { manyWorkers } from './many-workers.ts';

manyWorkers(2);
