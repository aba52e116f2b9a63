CREATE TABLE "webhook_endpoints" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "webhook_endpoints_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"url" text NOT NULL,
	"secret" text NOT NULL,
	"disabled_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "orders" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "orders_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"email" text NOT NULL,
	"cents" integer NOT NULL,
	"placed_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "received_events" (
	"webhook_id" text PRIMARY KEY NOT NULL,
	"type" text NOT NULL,
	"data" jsonb NOT NULL
);
--> statement-breakpoint
CREATE TABLE "received_requests" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "received_requests_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"webhook_id" text NOT NULL,
	"status" integer NOT NULL,
	"received_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "queue_jobs" (
	"id" bigint GENERATED ALWAYS AS IDENTITY (sequence name "queue_jobs_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"run_at" timestamp with time zone DEFAULT now() NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"claimed_at" timestamp with time zone,
	"worker_id" bigint,
	"fence" bigint DEFAULT floor((EXTRACT(epoch FROM statement_timestamp()) * (1000)::numeric)) NOT NULL,
	"batch_id" bigint,
	"blockers" integer,
	"priority" smallint DEFAULT 5 NOT NULL,
	"attempt" smallint DEFAULT 0 NOT NULL,
	"max_attempts" smallint NOT NULL,
	"weight" smallint,
	"queue" text NOT NULL,
	"kind" text NOT NULL,
	"unique_key" text,
	"waiting_key" text,
	"group_key" text,
	"payload" jsonb NOT NULL,
	"errors" jsonb DEFAULT '[]'::jsonb NOT NULL,
	"metadata" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"cancel_reason" text,
	"progress" jsonb,
	CONSTRAINT "queue_jobs_pkey" PRIMARY KEY("id","queue"),
	CONSTRAINT "queue_jobs_priority_check" CHECK (priority between 0 and 9)
);
--> statement-breakpoint
CREATE TABLE "queue_pauses" (
	"queue" text PRIMARY KEY NOT NULL,
	"paused_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "queue_results" (
	"job_id" bigint NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"run_at" timestamp with time zone NOT NULL,
	"claimed_at" timestamp with time zone,
	"finished_at" timestamp with time zone DEFAULT now() NOT NULL,
	"worker_id" bigint,
	"fence" bigint NOT NULL,
	"batch_id" bigint,
	"priority" smallint NOT NULL,
	"attempt" smallint NOT NULL,
	"max_attempts" smallint NOT NULL,
	"weight" smallint,
	"queue" text NOT NULL,
	"kind" text NOT NULL,
	"state" text NOT NULL,
	"unique_key" text,
	"group_key" text,
	"payload" jsonb,
	"output" jsonb,
	"errors" jsonb NOT NULL,
	"metadata" jsonb NOT NULL,
	CONSTRAINT "queue_results_pkey" PRIMARY KEY("job_id","queue"),
	CONSTRAINT "queue_results_state_check" CHECK (state in ('completed', 'discarded', 'cancelled'))
);
--> statement-breakpoint
CREATE TABLE "queue_workers" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "queue_workers_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"name" text NOT NULL,
	"queues" jsonb NOT NULL,
	"kinds" jsonb,
	"started_at" timestamp with time zone DEFAULT now() NOT NULL,
	"seen_at" timestamp with time zone DEFAULT now() NOT NULL,
	"session" integer,
	"node" text
);
--> statement-breakpoint
CREATE TABLE "queue_groups" (
	"queue" text NOT NULL,
	"group_key" text NOT NULL,
	"ready_at" timestamp with time zone NOT NULL,
	"turn" bigint DEFAULT 0 NOT NULL,
	"rate_used" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"held" bigint[] DEFAULT '{}' NOT NULL,
	"bounded_since" timestamp with time zone,
	CONSTRAINT "queue_groups_pkey" PRIMARY KEY("queue","group_key")
);
--> statement-breakpoint
CREATE TABLE "queue_holds" (
	"queue" text NOT NULL,
	"group_key" text NOT NULL,
	"job_id" bigint NOT NULL,
	"until" timestamp with time zone NOT NULL,
	"worker_id" bigint,
	CONSTRAINT "queue_holds_pkey" PRIMARY KEY("queue","group_key","job_id")
);
--> statement-breakpoint
CREATE TABLE "queue_keys" (
	"queue" text NOT NULL,
	"kind" text NOT NULL,
	"key" text NOT NULL,
	"until" timestamp with time zone NOT NULL,
	CONSTRAINT "queue_keys_pkey" PRIMARY KEY("queue","kind","key")
);
--> statement-breakpoint
CREATE TABLE "queue_limits" (
	"queue" text NOT NULL,
	"kind" text DEFAULT '' NOT NULL,
	"group_key" text DEFAULT '' NOT NULL,
	"concurrency" integer,
	"rate_limit" integer,
	"rate_per_ms" bigint,
	"weight" integer,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "queue_limits_pkey" PRIMARY KEY("queue","kind","group_key"),
	CONSTRAINT "queue_limits_rate_check" CHECK (num_nonnulls(rate_limit, rate_per_ms) <> 1)
);
--> statement-breakpoint
CREATE TABLE "queue_notes" (
	"id" bigint GENERATED ALWAYS AS IDENTITY (sequence name "queue_notes_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"due_at" timestamp with time zone NOT NULL,
	"queue" text NOT NULL,
	"group_keys" text[] NOT NULL,
	CONSTRAINT "queue_notes_pkey" PRIMARY KEY("queue","due_at","id")
);
--> statement-breakpoint
CREATE TABLE "queue_schedules" (
	"name" text PRIMARY KEY NOT NULL,
	"queue" text NOT NULL,
	"kind" text NOT NULL,
	"payload" jsonb NOT NULL,
	"settings" jsonb NOT NULL,
	"cron" text,
	"every_ms" bigint,
	"time_zone" text NOT NULL,
	"catch_up" text NOT NULL,
	"overlap" boolean NOT NULL,
	"starts_at" timestamp with time zone,
	"ends_at" timestamp with time zone,
	"next_at" timestamp with time zone,
	"passed_at" timestamp with time zone NOT NULL,
	"last_at" timestamp with time zone,
	"paused_at" timestamp with time zone,
	"revision" bigint DEFAULT 0 NOT NULL,
	"declared_by" bigint,
	"seen_at" timestamp with time zone NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "queue_schedules_timing_check" CHECK (num_nonnulls(cron, every_ms) = 1)
);
--> statement-breakpoint
CREATE TABLE "queue_usage" (
	"queue" text NOT NULL,
	"kind" text DEFAULT '' NOT NULL,
	"leases" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"rate_used" jsonb DEFAULT '{}'::jsonb NOT NULL,
	CONSTRAINT "queue_usage_pkey" PRIMARY KEY("queue","kind")
);
--> statement-breakpoint
CREATE INDEX "queue_jobs_claim_idx" ON "queue_jobs" USING btree ("priority","queue","run_at","id") WHERE group_key is null;--> statement-breakpoint
CREATE INDEX "queue_jobs_group_idx" ON "queue_jobs" USING btree ("queue","group_key","priority","run_at","id") WHERE group_key is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "queue_jobs_unique_key_idx" ON "queue_jobs" USING btree ("queue","kind","unique_key") WHERE unique_key is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "queue_jobs_waiting_key_idx" ON "queue_jobs" USING btree ("queue","kind","waiting_key") WHERE waiting_key is not null;--> statement-breakpoint
CREATE INDEX "queue_jobs_batch_idx" ON "queue_jobs" USING btree ("batch_id") WHERE batch_id is not null;--> statement-breakpoint
CREATE INDEX "queue_jobs_failed_idx" ON "queue_jobs" USING btree ("queue","run_at","id") WHERE errors <> '[]'::jsonb;--> statement-breakpoint
CREATE INDEX "queue_results_finished_at_idx" ON "queue_results" USING btree ("finished_at");--> statement-breakpoint
CREATE INDEX "queue_results_discarded_idx" ON "queue_results" USING btree ("finished_at") WHERE state = 'discarded';--> statement-breakpoint
CREATE INDEX "queue_results_unique_key_idx" ON "queue_results" USING btree ("unique_key","job_id") WHERE unique_key is not null;--> statement-breakpoint
CREATE INDEX "queue_results_group_idx" ON "queue_results" USING btree ("group_key","job_id") WHERE group_key is not null;--> statement-breakpoint
CREATE INDEX "queue_results_batch_idx" ON "queue_results" USING btree ("batch_id") WHERE batch_id is not null;--> statement-breakpoint
CREATE INDEX "queue_groups_ready_idx" ON "queue_groups" USING btree ("queue","ready_at","turn") WHERE turn >= 0;--> statement-breakpoint
CREATE INDEX "queue_keys_until_idx" ON "queue_keys" USING btree ("until");--> statement-breakpoint
CREATE INDEX "queue_schedules_next_at_idx" ON "queue_schedules" USING btree ("next_at") WHERE paused_at is null;