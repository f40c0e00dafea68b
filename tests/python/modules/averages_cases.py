"""Averages of parameters and buffers, and the statistics of batch norms."""

from .hooks_cases import filled, values


def case_averages(torch):
    u, results = torch.optim.swa_utils, []
    choices = [
        {}, {"use_buffers": True}, {"avg_fn": u.get_ema_avg_fn(0.9)}, {"multi_avg_fn": u.get_ema_multi_avg_fn(0.9), "use_buffers": True},
        {"multi_avg_fn": u.get_swa_multi_avg_fn()},
    ]  # fmt: skip
    for options in choices:
        net = filled(torch, torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3)))
        model = u.AveragedModel(net, **options)
        for i in range(3):
            net(values(torch, 4, 2) * (i + 1))
            with torch.no_grad():
                for p in net.parameters():
                    p.mul_(0.5).add_(i)
            model.update_parameters(net)
        results.append(dict(model.state_dict()))
        u.update_bn([(values(torch, 4, 2), 0), (values(torch, 4, 2) + 1, 0)], model)
        results.append([model.module[1].running_mean, model.module[1].momentum, model.training])
    return results
