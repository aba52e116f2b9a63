CREATE TABLE "queue_metrics" (
	"worker_id" bigint NOT NULL,
	"report" bigint NOT NULL,
	"at" timestamp with time zone NOT NULL,
	"wait_ms" bigint DEFAULT 0 NOT NULL,
	"run_ms" bigint DEFAULT 0 NOT NULL,
	"completed" integer DEFAULT 0 NOT NULL,
	"retried" integer DEFAULT 0 NOT NULL,
	"discarded" integer DEFAULT 0 NOT NULL,
	"cancelled" integer DEFAULT 0 NOT NULL,
	"snoozed" integer DEFAULT 0 NOT NULL,
	"interrupted" integer DEFAULT 0 NOT NULL,
	"lost" integer DEFAULT 0 NOT NULL,
	"minutes" smallint NOT NULL,
	"queue" text NOT NULL,
	"kind" text NOT NULL,
	"wait" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"run" jsonb DEFAULT '{}'::jsonb NOT NULL,
	CONSTRAINT "queue_metrics_pkey" PRIMARY KEY("worker_id","report","queue","kind")
);
--> statement-breakpoint
CREATE INDEX "queue_metrics_at_idx" ON "queue_metrics" USING btree ("minutes","at");