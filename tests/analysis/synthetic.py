"""Writes run directories as rubato does, from a small simulation of its own; for tests and for looking at figures."""

import csv
import heapq
import json
import math
import os
import random
from typing import Any, Iterable

HEADERS = {
    "gradients": "seq,worker,worker_seq,read_version,apply_version,staleness,samples,pull_ns,begin_ns,end_ns,push_ns,"
                 "applied_ns,outcome,scale,loss,data_epoch,data_first",
    "updates": "time_ns,version,shard,contributors,mean_staleness,samples,epoch,learning_rate,effective_learning_rate",
    "evals": "time_ns,version,epoch,samples,train_loss,valid_loss,valid_error,test_loss,test_error,gradient_norm,"
             "suboptimality",
    "controller": "time_ns,worker,pushes,slowest,slowest_pushes,gap,last_push_ns,interval_ns,slowest_last_push_ns,"
                  "slowest_interval_ns,r_limit,granted,predicted_ns,slowest_predicted_ns",
    "rounds": "round,version,worker,shard,workers,steps,samples,broadcast_begin_ns,broadcast_end_ns,compute_begin_ns,"
              "compute_end_ns,reduce_begin_ns,reduce_end_ns,prepare_begin_ns,prepare_end_ns",
    "exchanges": "cycle,shard,worker,steps,pulls,asked_ns,begin_ns,end_ns",
    "iterations": "worker,iteration,delay,in_flight,version,begin_ns,computed_ns,waited_ns,end_ns",
    "layers": "worker,iteration,bucket,gradient_begin_ns,gradient_end_ns,reduce_begin_ns,reduce_end_ns,apply_begin_ns,"
              "apply_end_ns",
    "shards": "shard,worker,worker_seq,read_version,apply_version,staleness,applied_ns,outcome",
    "faults": "time_ns,event,role,host,link,bandwidth_factor,latency_factor",
    "timeline": "role,kind,begin_ns,end_ns,peer,bytes",
    "workers": "worker,device,host,gradients,applied,dropped,cancelled,leftover,staleness_mean,staleness_p99,compute_s,"
               "push_queued_s,push_moving_s,pull_request_s,pull_moving_s,policy_wait_s,apply_wait_s,evaluate_s,idle_s,"
               "inquiries,pulls",
    "servers": "role,host,pushes,updates,replies,push_s,update_s,pull_s,evaluate_s,idle_s,bytes_in,bytes_out,"
               "receiving_s,sending_s",
}


def write_table(directory: str, table: str, rows: Iterable[Iterable[Any]]) -> None:
    """A CSV of the table's columns."""
    with open(os.path.join(directory, f"{table}.csv"), "w", encoding="utf-8", newline="") as file:
        file.write(HEADERS[table] + "\n")
        csv.writer(file, lineterminator="\n").writerows(rows)


def simulate(workers: int, per_update: int, updates: int, barrier: bool, seed: int) -> dict[str, list[list[Any]]]:
    """Rows of gradients, updates and timeline: lognormal compute times, pushes that take 2 ms, a server that is free.

    barrier: workers wait for the update that their gradient belongs to (hardsync).
    """
    draw, version, accepted, held, seq = random.Random(seed), 0, [], [], 0
    tables: dict[str, list[list[Any]]] = {"gradients": [], "updates": [], "timeline": []}
    queue: list[tuple[int, int, int, int]] = []
    counts = [0] * workers

    def begin(now: int, worker: int) -> None:
        heapq.heappush(queue, (now + round(1e8 * draw.lognormvariate(0, 0.12)), worker, now, version))

    for worker in range(workers):
        begin(1000, worker)
    while version < updates:
        end, worker, began, read = heapq.heappop(queue)
        arrive = end + 2_000_000
        tables["timeline"] += [[worker + 1, "compute", began, end, "", 0], [worker + 1, "push", end, arrive, 0, 350000]]
        accepted.append([worker, counts[worker], read, began, end])
        counts[worker] += 1
        if len(accepted) == per_update:
            staleness = [version - one[2] for one in accepted]
            for (who, nth, old, start, stop), stale in zip(accepted, staleness):
                tables["gradients"].append([seq, who, nth, old, version, stale, 32, start - 1000, start, stop, stop,
                                            arrive + 500_000, "applied", 1, 2.3, seq // 100, 32 * (seq % 100)])
                seq += 1
            version += 1
            epoch = seq * 32 / 6000
            mean = sum(staleness) / len(staleness)
            tables["updates"].append([arrive + 500_000, version, 0, per_update, mean, 32 * per_update, epoch, 0.1, 0.1])
            tables["timeline"].append([0, "apply", arrive, arrive + 500_000, "", 0])
            accepted = []
            for other in held:
                begin(arrive + 4_500_000, other)
                tables["timeline"].append([other + 1, "pull", arrive + 500_000, arrive + 4_500_000, 0, 350000])
            held = []
        if barrier and accepted:
            held.append(worker)
            continue
        tables["timeline"].append([worker + 1, "pull", arrive + 500_000, arrive + 4_500_000, 0, 350000])
        begin(arrive + 4_500_000, worker)
    left = len(tables["gradients"])
    tables["gradients"].append([left, 0, counts[0], version, "", "", 32, 1, 2, "", "", "", "cancelled", 1, 0, "", ""])
    return tables


def evaluations(updates: list[list[Any]], diverged: bool, speed: float) -> list[list[Any]]:
    """Rows of evals: errors that fall, or that rise to chance and to no number."""
    rows = []
    for row in updates[:: max(1, len(updates) // 20)]:
        epoch = row[6]
        error = 0.12 + 0.78 * math.exp(-speed * epoch)
        loss: float | str = 2.3 * error
        if diverged:
            error = min(0.9, 0.3 + 0.2 * epoch)
            loss = "nan" if error == 0.9 else 2.3 + epoch
        rows.append([row[0], row[1], epoch, round(epoch * 6000), loss, loss, error + 0.005, loss, error, "", ""])
    return rows


def write_run(directory: str, protocol: str = "n-softsync", n: int = 1, workers: int = 4, updates: int = 60,
              rule: str = "inverse-n", status: str = "finished", seed: int = 1, name: str = "synthetic",
              summary: bool = True, speed: float = 1.0) -> str:
    """A whole run directory; returns its path."""
    os.makedirs(directory, exist_ok=True)
    per_update = {"hardsync": workers, "n-softsync": max(1, workers // n)}.get(protocol, 1)
    tables = simulate(workers, per_update, updates, protocol == "hardsync", seed)
    tables["evals"] = evaluations(tables["updates"], status == "diverged", speed)
    tables["workers"] = [[w, "default", f"host-{w}", 9, 9, 0, 0, 0, 1.0, 2, 0.5, 0, 0.1, 0, 0.1, 0, 0, 0, 0.1, 9, 9]
                         for w in range(workers)]
    tables["servers"] = [[0, "host-s", 9, 9, 9, 0.1, 0.1, 0.1, 0, 0.7, 350000, 350000, 0.4, 0.4]]
    # As if the fastest worker had been granted more and more; the first question came too early for an answer.
    tables["shards"] = [[1, *row[1:6], row[11], row[12]] for row in tables["gradients"]]
    tables["rounds"] = [[k, k + 1, "", "", workers, 8, 256] + [10**8 * k + 10**7 * stage for stage in range(8)]
                        for k in range(9)]
    tables["exchanges"] = [[k, k % 3, w, 4, 4, 10**8 * k, 10**8 * k + 10**6 * w, 10**8 * k + 10**6 * (w + 1)]
                           for k in range(9) for w in range(workers)]
    tables["iterations"] = [[w, k, 1, 1, k, 10**8 * k, 10**8 * k + 6 * 10**7, 10**7, 10**8 * k + 8 * 10**7]
                            for k in range(9) for w in range(workers)]
    tables["layers"] = [[w, k, 0, *(10**8 * k + 10**7 * stage for stage in range(6))]
                        for k in range(9) for w in range(workers)]
    tables["controller"] = [[10**8, 0, 4, 1, 0, 4, 10**8, 10**7, "", "", 12, 0, "", ""]]
    tables["controller"] += [[k * 10**8, 0, 3 * k, 1, k, 2 * k, k * 10**8, 10**7, k * 10**8 - 10**7, 10**8, 12, k % 9,
                              k * 10**8 + k % 9 * 10**7, k * 10**8 + 9 * 10**7] for k in range(2, 40)]
    tables["faults"] = [[10**8, "crash", 1, "host-0", "", "", ""], [2 * 10**8, "return", 1, "host-0", "", "", ""],
                        [3 * 10**8, "link", "", "", "host-1", 0.5, 1]]
    for table, rows in tables.items():
        write_table(directory, table, rows)
    scenario = {
        "name": name, "seed": seed, "data": {"dataset": "fashion-mnist"}, "model": {"name": "mlp", "gradients": "real"},
        "workers": {"groups": [{"count": workers, "device": "default"}], "batch_size": 32},
        "protocol": {"name": protocol} | ({"n": n} if protocol == "n-softsync" else {}),
        "optimizer": {"name": "momentum", "learning_rate": 0.1, "staleness_rule": rule},
    }
    applied = [row for row in tables["gradients"] if row[12] == "applied"]
    histogram = [0] * (max(row[5] for row in applied) + 1)
    for row in applied:
        histogram[row[5]] += 1
    figures = {
        "trace_version": 1, "scenario": name, "backend": "sim", "clock": "virtual", "seed": seed, "status": status,
        "time_s": tables["updates"][-1][0] / 1e9, "updates": updates, "test_error": tables["evals"][-1][8],
        "staleness": {"mean": sum(row[5] for row in applied) / len(applied), "histogram": histogram},
    }
    for leaf, value in (("scenario.json", scenario), ("summary.json", figures)):
        if leaf != "summary.json" or summary:
            with open(os.path.join(directory, leaf), "w", encoding="utf-8") as file:
                json.dump(value, file, indent=1)
    return directory
