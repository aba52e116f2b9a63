import { testSystem } from './test-system.ts';

testSystem('pgBoss');
testSystem('graphileWorker');
testSystem('bullmqOnPostgres');
