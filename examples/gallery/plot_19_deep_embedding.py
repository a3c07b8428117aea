"""
A network that embeds images
============================

The same objective trains a network: ``ANNLoss`` takes embeddings and labels. A small
convolutional network learns two components of the digits, in a few seconds on a CPU. It
needs PyTorch (``pip install 'vicinal[deep]'``); where that is missing, nothing is shown
here.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split

import vicinal as vc

try:
    import torch
    from torch import nn

    from vicinal.deep import ANNLoss, embed
except ImportError:
    torch = None
    print("PyTorch is not installed: nothing to see")

if torch is not None:
    torch.manual_seed(0)
    torch.set_num_threads(2)
    digits = load_digits()
    images = torch.tensor(digits.images[:, None] / 16, dtype=torch.float32)
    X_train, X_test, y_train, y_test = train_test_split(
        images, torch.tensor(digits.target), test_size=0.4, random_state=0
    )
    network = nn.Sequential(
        *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(128, 2)),
    )
    loss = ANNLoss(normalize=False)
    optimizer = torch.optim.AdamW(network.parameters(), lr=5e-3)
    for _ in range(25):
        for batch in torch.randperm(len(X_train)).split(256):
            optimizer.zero_grad()
            loss(network(X_train[batch]), y_train[batch]).backward()
            optimizer.step()

    flat = [part.flatten(1).numpy() for part in (X_train, X_test)]
    pca = PCA(2).fit(flat[0])
    maps = {
        "two principal components": [pca.transform(part) for part in flat],
        "two learned components": [
            embed(network, part, normalize=False) for part in (X_train, X_test)
        ],
    }
    fig, axes = plt.subplots(1, 2, figsize=(9, 4.2))
    for ax, (name, (near, far)) in zip(axes, maps.items(), strict=True):
        knn = vc.ClassMeanKNN(rule="vote").fit(near, y_train.numpy())
        ax.scatter(*far.T, c=y_test, cmap="tab10", s=7)
        score = knn.score(far, y_test.numpy())
        ax.set(title=f"{name}: {score:.0%} right", xticks=[], yticks=[])
    plt.show()
