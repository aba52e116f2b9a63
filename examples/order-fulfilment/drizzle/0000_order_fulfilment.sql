CREATE TABLE "mails" (
	"link" text PRIMARY KEY NOT NULL,
	"order_id" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "orders" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "orders_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"cents" integer NOT NULL,
	"status" text DEFAULT 'placed' NOT NULL
);
--> statement-breakpoint
CREATE TABLE "service_calls" (
	"key" text PRIMARY KEY NOT NULL,
	"what" text NOT NULL,
	"order_id" bigint NOT NULL,
	"times" integer DEFAULT 1 NOT NULL
);
--> statement-breakpoint
CREATE TABLE "stock_moves" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "stock_moves_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"order_id" bigint NOT NULL,
	"pieces" integer NOT NULL
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
CREATE TABLE "queue_batches" (
	"id" bigint GENERATED ALWAYS AS IDENTITY (sequence name "queue_batches_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"flow_id" bigint,
	"total" bigint NOT NULL,
	"pending" bigint NOT NULL,
	"failed" bigint DEFAULT 0 NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"recounted_at" timestamp with time zone,
	"ended_at" timestamp with time zone,
	"waiting" text,
	"cancel_reason" text,
	CONSTRAINT "queue_batches_pkey" PRIMARY KEY("id")
);
--> statement-breakpoint
CREATE TABLE "queue_mailboxes" (
	"job_id" bigint NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	"received" integer DEFAULT 0 NOT NULL,
	"waiting" boolean DEFAULT false NOT NULL,
	"queue" text NOT NULL,
	"name" text NOT NULL,
	"sent" jsonb DEFAULT '[]'::jsonb NOT NULL,
	CONSTRAINT "queue_mailboxes_pkey" PRIMARY KEY("job_id","queue","name")
);
--> statement-breakpoint
CREATE TABLE "queue_steps" (
	"job_id" bigint NOT NULL,
	"fence" bigint NOT NULL,
	"started_at" timestamp with time zone NOT NULL,
	"ended_at" timestamp with time zone,
	"until" timestamp with time zone,
	"attempts" smallint DEFAULT 1 NOT NULL,
	"queue" text NOT NULL,
	"name" text NOT NULL,
	"kind" text NOT NULL,
	"signal" text,
	"trace" text,
	"output" jsonb,
	"error" jsonb,
	CONSTRAINT "queue_steps_pkey" PRIMARY KEY("job_id","queue","name")
);
--> statement-breakpoint
CREATE TABLE "queue_tallies" (
	"id" bigint GENERATED ALWAYS AS IDENTITY (sequence name "queue_tallies_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"batch_id" bigint NOT NULL,
	"added" integer DEFAULT 0 NOT NULL,
	"ended" integer DEFAULT 0 NOT NULL,
	"failed" integer DEFAULT 0 NOT NULL,
	"cancel_reason" text,
	CONSTRAINT "queue_tallies_pkey" PRIMARY KEY("batch_id","id")
);
--> statement-breakpoint
CREATE TABLE "queue_waits" (
	"batch_id" bigint NOT NULL,
	"job_id" bigint NOT NULL,
	"queue" text NOT NULL,
	"policy" text NOT NULL,
	CONSTRAINT "queue_waits_pkey" PRIMARY KEY("batch_id","job_id","queue")
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
CREATE INDEX "queue_batches_flow_idx" ON "queue_batches" USING btree ("flow_id") WHERE flow_id is not null;--> statement-breakpoint
CREATE INDEX "queue_waits_job_idx" ON "queue_waits" USING btree ("job_id");